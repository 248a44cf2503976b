// Package node finds the nodes below /dev of NVIDIA devices (Linux).
package node

import (
	"os"
	"path/filepath"
	"strings"
)

// driver is the directory in which NVIDIA's driver describes its devices.
const driver = "/proc/driver/nvidia"

// Unknown is the error for a device whose node the driver does not tell.
type Unknown struct{ UUID string }

func (e *Unknown) Error() string { return "the driver does not tell the node of device " + e.UUID }

// Of returns the nodes that programs need for the GPUs with these UUIDs, and none of another GPU. For a partitioned
// device (MIG), it returns the nodes of all instances: only NVML could tell which instance has which UUID.
func Of(gpus []string) ([]string, error) { return nodes(driver, gpus) }

// nodes is Of with the directory of the driver.
func nodes(driver string, gpus []string) ([]string, error) {
	if len(gpus) == 0 {
		return nil, nil
	}
	minors := map[string]string{}
	files, _ := filepath.Glob(driver + "/gpus/*/information")
	for _, name := range files {
		fields, err := fieldsOf(name)
		if err != nil {
			return nil, err
		}
		minors[fields["GPU UUID"]] = fields["Device Minor"]
	}
	all := []string{}
	for _, uuid := range gpus {
		minor := minors[uuid]
		if minor == "" {
			return nil, &Unknown{uuid}
		}
		all = append(all, "/dev/nvidia"+minor)
		for _, level := range []string{"/access", "/ci*/access"} { // GPU instances and compute instances
			files, _ := filepath.Glob(driver + "/capabilities/gpu" + minor + "/mig/gi*" + level)
			for _, name := range files {
				fields, err := fieldsOf(name)
				if err != nil {
					return nil, err
				}
				all = append(all, "/dev/nvidia-caps/nvidia-cap"+fields["DeviceFileMinor"])
			}
		}
	}
	for _, name := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"} {
		if _, err := os.Stat(name); err == nil {
			all = append(all, name)
		}
	}
	return all, nil
}

// fieldsOf reads a file with lines such as "Device Minor: 0".
func fieldsOf(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return fields, nil
}
