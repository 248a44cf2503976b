//go:build linux && cgo

package gpu

import (
	"testing"
	"testing/fstest"
)

// NVIDIA's kernel driver locks clocks only for root; a stand-in may decide otherwise.
func TestMayLockClocks(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, test := range []struct {
		name  string
		files fstest.MapFS
		want  bool
	}{
		{"no driver", fstest.MapFS{"proc/self/status": file("CapEff:\t0000000000000000\n")}, true},
		{"root", fstest.MapFS{"proc/driver/nvidia/version": file(""),
			"proc/self/status": file("Name:\tx\nCapEff:\t000001ffffffffff\n")}, true},
		{"root in a container", fstest.MapFS{"proc/driver/nvidia/version": file(""),
			"proc/self/status": file("CapEff:\t00000000a80425fb\n")}, false},
		{"a user", fstest.MapFS{"proc/driver/nvidia/version": file(""),
			"proc/self/status": file("CapEff:\t0000000000000000\n")}, false},
		{"not to be seen", fstest.MapFS{"proc/driver/nvidia/version": file("")}, true},
	} {
		if got := mayLockClocks(test.files); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
