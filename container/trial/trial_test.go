package trial_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/container/trial"
)

// An engine says of limits and devices whether it gives them to containers, and what can be done if it does not.
func TestAnEngineIsTriedForWhatServersAskFor(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	labels := map[string]string{container.LabelState: e.State()}
	none, where := filepath.Join(t.TempDir(), "none"), "at the same path as on the host"
	if containertest.IsPodman(t, e) { // it makes the directory
		where = ""
	}
	for name, c := range map[string]struct {
		grants trial.Grants
		remedy string // empty: it gives that
	}{
		"limits":         {trial.Grants{Ulimits: map[string]int64{"nofile": 256, "core": 0}}, ""},
		"a capability":   {trial.Grants{Caps: []string{"IPC_LOCK"}}, ""},
		"a device":       {trial.Grants{Devices: []string{"/dev/full"}}, ""},
		"no such device": {trial.Grants{Devices: []string{"/dev/infiniband/none"}}, "leave it out of devices"},
		"a directory":    {trial.Grants{Mount: "/"}, ""},
		"none there":     {trial.Grants{Mount: none}, where},
		"too many files": {trial.Grants{Ulimits: map[string]int64{"nofile": 1 << 40}}, "lower ulimits"},
	} {
		err := c.grants.Check(t.Context(), e, labels)
		said, _ := errors.AsType[*container.Error](err)
		if err == nil != (c.remedy == "") || err != nil && (said == nil || !strings.Contains(said.Remedy, c.remedy)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Commands run below the directories of the state and the store, which Podman must be able to mount.
func TestADirectoryInWhichNoContainerRuns(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	podman := containertest.IsPodman(t, e)
	for _, dirs := range [][2]string{{"/odd,a:b", "/x"}, {"/x", "/odd,a:b"}} {
		if why := trial.Lacks(e, dirs[0], dirs[1], "", nil); strings.Contains(why, "/odd,a:b") != podman {
			t.Errorf("Podman: %t, %q", podman, why)
		}
	}
	if why := trial.Lacks(e, "/plain", "/a,b", "", nil); why != "" {
		t.Error(why)
	}
}
