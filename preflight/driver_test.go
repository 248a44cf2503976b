package preflight

import (
	"context"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/preflight/requirement"
)

// ofCUDA are the requirements of NVIDIA's images of CUDA 12.4, abridged.
const ofCUDA = "cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=nvidia,driver>=470,driver<471 " +
	"brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=535,driver<536"

func TestDriversAreComparedWithTheImage(t *testing.T) {
	t.Parallel()
	cuda := map[string]string{"CUDA_VERSION": "12.4.1", "NVIDIA_REQUIRE_CUDA": ofCUDA}
	of := func(requirement string) map[string]string {
		return map[string]string{"NVIDIA_REQUIRE_X": requirement}
	}
	with := func(name, value string) map[string]string {
		env := map[string]string{name: value}
		for name, value := range cuda {
			if _, ok := env[name]; !ok {
				env[name] = value
			}
		}
		return env
	}
	for name, tt := range map[string]struct {
		image    string
		requires map[string]string
		device   requirement.Device
		want     Status // empty: nothing is said
		says     string
	}{
		"new enough": {"app", cuda, requirement.Device{Driver: "550.54.15", CUDA: "12.4"}, OK,
			`"cuda>=12.4" or one of 4 alt`},
		"too old": {"app", cuda, requirement.Device{Driver: "530.30.02", CUDA: "12.1", Brand: "nvidia"}, Warn,
			"H100 has driver 530.30.02 with CUDA 12.1"},
		"by its branch": {"app", cuda, requirement.Device{Driver: "530.30.02", Brand: "nvidia"}, Warn,
			"with CUDA 12.1"},
		"an older driver will do": {"app", cuda, requirement.Device{Driver: "535.104.05", CUDA: "12.2",
			Brand: "nvidia"}, OK, ""},
		"not for this brand": {"app", cuda, requirement.Device{Driver: "535.104.05", Brand: "geforce"}, Warn, ""},
		"it hangs on the brand": {"app", cuda, requirement.Device{Driver: "535.104.05", CUDA: "12.2"}, Unverified,
			""},
		"no driver is known": {"app", cuda, requirement.Device{}, "", ""},
		"switched off": {"app", with("NVIDIA_DISABLE_REQUIRE", "true"),
			requirement.Device{Driver: "470.1", CUDA: "11.4"}, "",
			""},
		"not switched off": {"app", with("NVIDIA_DISABLE_REQUIRE", "no"), requirement.Device{Driver: "460.1"}, Warn,
			""},
		"of another sort of GPU": {"app", map[string]string{"NVIDIA_REQUIRE_JETPACK": "csv"},
			requirement.Device{Driver: "460.1"},
			"", ""},
		"all variables count": {"app", with("NVIDIA_REQUIRE_DRIVER", "driver>=560"),
			requirement.Device{Driver: "550.54.15", CUDA: "12.4"}, Warn, `"driver>=560"`},
		"an old image": {"app", map[string]string{"CUDA_VERSION": "12.6.0"}, requirement.Device{Driver: "550.1"}, Warn,
			`"cuda>=12.6"`},
		"the name lies": {"cuda:11.8-base", cuda, requirement.Device{Driver: "470.1", Brand: "geforce"}, Warn,
			"12.4"},
		"the name alone": {"nvidia/cuda:12.4.1-base", nil, requirement.Device{Driver: "470.1"}, Warn,
			"by its name"},
		"the name alone fits": {"nvidia/cuda:12.4.1-base", nil, requirement.Device{Driver: "525.1"}, OK, "by its name"},
		"nothing is known":    {"app", nil, requirement.Device{Driver: "470.1"}, "", ""},
		"compute capability":  {"app", of("arch>=9.0"), requirement.Device{Driver: "1"}, Unverified, ""},
		"no requirement":      {"app", of(" , "), requirement.Device{Driver: "1"}, OK, ""},
		"no comparison":       {"app", of("cuda12\x1b"), requirement.Device{Driver: "1"}, Unverified, `cuda12\x1b`},
		"unknown term":        {"app", of("moon=full"), requirement.Device{Driver: "1"}, Unverified, "understood"},
		"no version":          {"app", of("cuda>=x"), requirement.Device{Driver: "1"}, Unverified, "understood"},
		"equal with zeros":    {"app", of("cuda=12.0.0"), requirement.Device{Driver: "525.1"}, OK, ""},
		"not equal":           {"app", of("cuda!=12.0"), requirement.Device{Driver: "525.1"}, Warn, ""},
		"versions of any length": {"app", of("driver<=525.60.13"),
			requirement.Device{Driver: "525.60"}, OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.device.Name = "H100"
			devices := []requirement.Device{{Name: "H200", Driver: "999.1", CUDA: "99.0", Brand: "nvidia"}, tt.device}
			if tt.device.Driver == "" || tt.want == OK {
				devices = devices[1:]
			}
			in := &Input{
				Devices: map[string][]requirement.Device{"one": devices,
					"other": {{Name: "K80", Driver: "1", CUDA: "1"}}},
				Images: []ImageState{{Name: tt.image, Requires: tt.requires, Machines: []string{"one"}}},
			}
			all, err := Run(context.Background(), in, trees{})
			if err != nil {
				t.Fatal(err)
			}
			var got Finding
			for _, f := range all {
				if f.Check == Driver {
					got = f
					break
				}
			}
			if got.Status != tt.want || !strings.Contains(got.Evidence, tt.says) ||
				strings.ContainsRune(got.Evidence, '\x1b') || got.Status == Warn && got.Remedy == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}
