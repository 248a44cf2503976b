package campaign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
)

// The containers of a benchmark ask the engine for exactly the devices that were leased, by UUID. The engine here has
// none to give: the test tells it everything else of a container, so that it counts as an engine that knows only CDI.
func TestAContainerGetsTheDevicesOfItsLease(t *testing.T) {
	t.Parallel()
	s := contained(t, strings.Replace(beside(
		`"echo server $CUDA_VISIBLE_DEVICES; `+httpd[1:], "tcp = true", `"echo client $CUDA_VISIBLE_DEVICES; `+get[1:],
		"gpus {\n count = 2\n model = \"^Big\" \n}"),
		`"mkdir $OUT/d`, `"echo task $CUDA_VISIBLE_DEVICES; mkdir $OUT/d`, 1))
	s.write("benchmarks.hcl", strings.Replace(s.read("benchmarks.hcl"), "    ready {",
		"    shm_size = \"64MiB\"\n    ulimits  = { nofile = 1234, core = -1 }\n    ready {", 1))
	for i, model := range []string{"Big", "Small", "Big", "Big"} {
		s.gpus = append(s.gpus, gpu.Device{Index: i, UUID: fmt.Sprintf("GPU-%d", i), Name: model, Memory: 1 << 30})
	}
	type request struct{ UUIDs, Visible, Limits string }
	var mu sync.Mutex
	asked := map[request]int{}
	real := s.engine
	defer func() { s.engine = real }()
	s.engine = between(t, real, func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/containers/create") {
			engine.ServeHTTP(w, r)
			return
		}
		var body map[string]any
		var c struct {
			Env        []string
			HostConfig container.HostConfig
		}
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err == nil {
			err = json.Unmarshal(text, &body)
		}
		if err != nil {
			t.Error(err)
		}
		seen, tried := request{}, strings.HasPrefix(r.URL.Query().Get("name"), "benchgraph-trial-")
		for _, d := range c.HostConfig.DeviceRequests {
			seen.UUIDs += strings.ReplaceAll(strings.Join(d.DeviceIDs, ","), "nvidia.com/gpu=", "")
			if tried {
				continue
			}
			if d.Count != 0 || d.Driver != "cdi" || len(d.Options)+len(d.Capabilities) > 0 {
				t.Errorf("asked for %+v", d)
			}
		}
		for _, l := range c.HostConfig.Ulimits {
			seen.Limits += fmt.Sprintf("%s %d %d, shm %d; ", l.Name, l.Soft, l.Hard, c.HostConfig.ShmSize)
		}
		for _, v := range c.Env {
			if value, ok := strings.CutPrefix(v, "CUDA_VISIBLE_DEVICES="); ok {
				seen.Visible = value
			}
		}
		mu.Lock()
		if !tried {
			asked[seen]++
		}
		mu.Unlock()
		if host, ok := body["HostConfig"].(map[string]any); ok {
			delete(host, "DeviceRequests")
		}
		text, err = json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		engine.ServeHTTP(w, r)
	})
	s.mustDo()
	if f := s.failureOf("run"); f != nil {
		t.Fatalf("%+v", f)
	}
	const limits = "core -1 -1, shm 67108864; nofile 1234 1234, shm 67108864; "
	if d := cmp.Diff(map[request]int{{}: asked[request{}], {"GPU-0,GPU-2", "GPU-0,GPU-2", limits}: 1,
		{"GPU-0,GPU-2", "GPU-0,GPU-2", ""}: 2}, asked); d != "" {
		t.Errorf("a server and the two passes of its client asked for (-want +got):\n%s", d)
	}
}

// If the engine can never give something to a server's container, the plan says so, with the place and a remedy. No
// image is built for it.
func TestAPlanRefusesImpossibleServers(t *testing.T) {
	t.Parallel()
	for asks, remedy := range map[string]string{
		`devices = ["/dev/infiniband/none"]`:   "leave it out of devices",
		`ulimits = { nofile = 1099511627776 }`: "lower ulimits",
		`ulimits = { nofile = 256 }`:           "",
	} {
		s := contained(t, strings.Replace(beside(httpd, "tcp = true", get, ""), "    ready {", asks+"\n    ready {", 1))
		steps := map[string]engine.Step{}
		s.open(func(ctx context.Context, p *campaign.Project) {
			plan, err := p.Plan(ctx, campaign.PlanOptions{})
			must(t, err)
			for _, step := range plan.Steps {
				steps[step.Node.Kind] = step
			}
		})
		trial, image := steps["trial"], steps["image"]
		if remedy == "" {
			if trial.Action != engine.Run || image.Action != engine.Run {
				t.Errorf("%s: %+v, %+v", asks, trial, image)
			}
			continue
		}
		if trial.Action != engine.Blocked || image.Action != engine.Skip ||
			!strings.Contains(trial.Reason, "benchmarks.hcl:") || !strings.Contains(trial.Reason, remedy) {
			t.Errorf("%s: %s %q, image %s", asks, trial.Action, trial.Reason, image.Action)
		}
	}
}

// Podman cannot name some directories to itself: the plan names these, and for a mount, the block that declares it.
func TestADirectoryThatPodmanCannotMountIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	odd := filepath.Join(t.TempDir(), "a,b:c")
	must(t, os.Mkdir(odd, 0o755))
	s := contained(t, fmt.Sprintf("mount \"m\" {\n source = %q\n target = \"/m\"\n identity = \"1\"\n}\n", odd)+
		beside(httpd, "tcp = true", get, "mounts = [mount.m]"))
	reason := func() (reason string) {
		s.open(func(ctx context.Context, p *campaign.Project) {
			plan, err := p.Plan(ctx, campaign.PlanOptions{})
			must(t, err)
			for _, step := range plan.Steps {
				if step.Node.Kind == "trial" {
					reason = step.Reason
				}
			}
		})
		return reason
	}
	real := s.engine
	podman := containertest.IsPodman(t, real)
	if why := reason(); strings.Contains(why, "Podman") != podman {
		t.Errorf("the engine is Podman: %t, and the plan says %q", podman, why)
	}
	s.engine = between(t, real, func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/version") {
			fmt.Fprint(w, `{"Components": [{"Name": "Podman Engine"}]}`)
			return
		}
		engine.ServeHTTP(w, r)
	})
	defer func() { s.engine = real }()
	if why := reason(); !strings.Contains(why, odd) || !strings.Contains(why, "benchmarks.hcl:") ||
		!strings.Contains(why, "rename it") {
		t.Errorf("on Podman: %q", why)
	}
}
