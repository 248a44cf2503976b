package executor

import (
	"testing"

	"github.com/docker/docker/api/types/mount"
)

func TestAVolumeIsMountedByItsName(t *testing.T) {
	got, _, err := (&Docker{}).mounts([]Mount{{Volume: "weights", Inside: "/models"},
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
