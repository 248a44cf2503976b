package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The driver's files are those of a machine with a whole device and one of two instances.
func TestNodesAreThoseOfTheLease(t *testing.T) {
	driver := t.TempDir()
	for name, text := range map[string]string{
		"gpus/0000:3b:00.0/information":        "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-whole\nDevice Minor: \t 0\n",
		"gpus/0000:af:00.0/information":        "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-parts\nDevice Minor: \t 1\n",
		"capabilities/mig/config":              "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n",
		"capabilities/gpu1/mig/gi1/access":     "DeviceFileMinor: 147\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
		"capabilities/gpu1/mig/gi1/ci0/access": "DeviceFileMinor: 148\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
		"capabilities/gpu1/mig/gi2/access":     "DeviceFileMinor: 156\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
		"capabilities/gpu1/mig/gi2/ci0/access": "DeviceFileMinor: 157\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
		"capabilities/gpu10/mig/gi1/access":    "DeviceFileMinor: 999\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
	} {
		full := filepath.Join(driver, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	for uuid, want := range map[string][]string{
		"GPU-whole": {"/dev/nvidia0"},
		"GPU-parts": {
			"/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap147", "/dev/nvidia-caps/nvidia-cap156",
			"/dev/nvidia-caps/nvidia-cap148", "/dev/nvidia-caps/nvidia-cap157",
		},
	} {
		got, err := nodes(driver, []string{uuid})
		if err != nil || !slices.Equal(got[:min(len(got), len(want))], want) {
			t.Errorf("%s: %q, %v; want %q", uuid, got, err, want)
		}
	}
	if got, err := nodes(driver, []string{"GPU-other"}); !errors.As(err, new(*Unknown)) {
		t.Errorf("a device that the driver does not tell of: %q", got)
	}
}
