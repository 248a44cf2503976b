package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
)

// An engine has devices for containers when it finds the hook of NVIDIA's toolkit, also where its configuration names
// no runtime. The hook of this test does nothing.
func TestAContainerIsTriedForGPUs(t *testing.T) {
	for name, works := range map[string]bool{"without the toolkit": false, "with the toolkit": true} {
		t.Run(name, func(t *testing.T) {
			if works {
				dir := t.TempDir()
				hook := filepath.Join(dir, "nvidia-container-runtime-hook")
				if err := os.WriteFile(hook, []byte("#!/bin/sh\ncat > /dev/null\n"), 0o755); err != nil {
					t.Fatal(err)
				}
				t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			}
			e := containertest.NewDaemon(t, containertest.DaemonOptions{}).Engine()
			err := docker.CheckGPUs(t.Context(), e)
			if works && err != nil {
				t.Error(err)
			}
			if !works && (err == nil || !strings.Contains(err.Error(), "install the NVIDIA Container Toolkit")) {
				t.Errorf("%v; want the remedy", err)
			}
			if left, err := e.Images(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("left: %+v, %v", left, err)
			}
		})
	}
}

// A container has those devices of CDI that it was started with, and no others. The engines of
// container/containertest/engines/run have two that are played by /dev/null.
func TestAContainerHasItsDevicesByCDI(t *testing.T) {
	if os.Getenv("BENCHGRAPH_TEST_CDI") == "" {
		t.Skip("the engine has no devices that are played: see container/containertest/engines/run")
	}
	w := newWorld(t)
	if err := docker.CheckGPUs(t.Context(), w.engine); err != nil {
		t.Fatal(err)
	}
	cmd := w.shell("ls /dev/nvidia*; echo gone >/dev/nvidia1")
	cmd.Container.GPUs = []string{"GPU-played-1"}
	if s, out := w.run(t, cmd); !s.OK() || out != "/dev/nvidia1\n" {
		t.Errorf("%+v, %q", s, out)
	}
	cmd.Container.GPUs = []string{"GPU-played-2"}
	if _, err := executor.Run(t.Context(), w, cmd); err == nil ||
		!strings.Contains(err.Error(), "nvidia-ctk cdi generate") {
		t.Errorf("a device that the specification does not name: %v", err)
	}
}
