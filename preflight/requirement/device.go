package requirement

import "regexp"

// Device is one GPU.
type Device struct {
	Name   string
	Memory int64  // bytes
	Driver string // version; empty: not known
	CUDA   string // newest version that the driver serves; empty: not known
	Brand  string // in the words of image requirements; empty: not known
}

// published are the memory sizes of devices as they are sold, in GiB: the usual size, and the largest of the name.
var published = []struct {
	name        string
	usual, most float64
}{
	{"GB300", 288, 288}, {"B300", 288, 288}, {"GB200", 192, 192}, {"B200", 180, 192}, {"B100", 192, 192},
	{"GH200", 96, 144}, {"H200", 141, 144},
	{"H100", 80, 94}, {"H800", 80, 80}, {"H20", 96, 141}, {"A100", 80, 80}, {"A800", 80, 80}, {"A40", 48, 48},
	{"A6000", 48, 48},
	{"RTX PRO 6000", 96, 96}, {"RTX 6000", 48, 96}, {"L40", 48, 48}, {"L20", 48, 48}, {"L4", 24, 24}, {"A30", 24, 24},
	{"A10", 24, 24}, {"V100", 32, 32},
	{"T4", 16, 16}, {"RTX 5090", 32, 32}, {"RTX 4090", 24, 48}, {"RTX 3090", 24, 24},
}

// Serving returns the devices of a machine with a matching name and enough memory.
func Serving(machine []Device, pattern string, memory int64) (able []Device) {
	like, err := regexp.Compile(pattern)
	for _, d := range machine {
		if err == nil && like.MatchString(d.Name) && float64(d.Memory) >= 0.92*float64(memory) {
			able = append(able, d)
		}
	}
	return able
}

// DeviceMemory returns the usual and the greatest memory of a device with a matching name, in bytes, and its name: on a
// machine or, if no device of the machine is known, as sold. 0: unknown.
func DeviceMemory(machine []Device, pattern string, memory int64) (usual, most float64, name string) {
	if len(machine) > 0 {
		for _, d := range Serving(machine, pattern, memory) {
			if float64(d.Memory) > most {
				most, name = float64(d.Memory), d.Name
			}
		}
		return most, most, name
	}
	like, err := regexp.Compile(pattern)
	if err != nil || pattern == "" {
		return 0, 0, ""
	}
	for _, d := range published {
		if like.MatchString("NVIDIA " + d.name) {
			most = max(most, d.most*(1<<30))
			if d.usual*(1<<30) > usual {
				usual, name = d.usual*(1<<30), d.name
			}
		}
	}
	if float64(memory) >= 0.9*usual {
		most = usual // the file means the usual size
	}
	return usual, most, name
}
