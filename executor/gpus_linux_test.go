package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
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
			err := executor.CheckGPUs(t.Context(), e)
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
