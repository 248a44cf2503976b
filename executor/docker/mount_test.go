package docker

import (
	"testing"

	"github.com/docker/docker/api/types/mount"

	"github.com/benchgraph/benchgraph/executor"
)

func TestAVolumeIsMountedByItsName(t *testing.T) {
	got, _, err := (&Executor{}).mounts([]executor.Mount{{Volume: "weights", Inside: "/models"},
		{Volume: "cache", Inside: "/cache", Writable: true}})
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if m := got[0]; m.Type != mount.TypeVolume || m.Source != "weights" || m.Target != "/models" || !m.ReadOnly {
		t.Errorf("got %+v", m)
	}
	if got[1].ReadOnly {
		t.Errorf("got %+v", got[1])
	}
}
