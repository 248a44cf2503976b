package trial_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
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

// TestAnInterruptEndsTheQuestion has an engine that never answers. An interrupt ends the wait for its answer.
func TestAnInterruptEndsTheQuestion(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		if c, err := listener.Accept(); err == nil {
			defer c.Close()
			interrupt()
			<-t.Context().Done()
		}
	}()
	e := container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": "unix://" + socket}})
	if why := trial.Lacks(ctx, e, "/x", "/x", "", nil); !strings.Contains(why, context.Canceled.Error()) {
		t.Error(why)
	}
}

// TestOnceAsksAgainAfterAnInterrupt shows that an answer is kept only if the question was not broken off.
func TestOnceAsksAgainAfterAnInterrupt(t *testing.T) {
	asked := 0
	lacks := trial.Once(func(context.Context) string { asked++; return strconv.Itoa(asked) })
	ended, end := context.WithCancel(t.Context())
	end()
	for i, ctx := range []context.Context{ended, t.Context(), t.Context()} {
		if got, want := lacks(ctx), []string{"1", "2", "2"}[i]; got != want {
			t.Errorf("question %d: %s instead of %s", i, got, want)
		}
	}
}

// Commands run below the directories of the state and the store, which Podman must be able to mount.
func TestADirectoryInWhichNoContainerRuns(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	podman := containertest.IsPodman(t, e)
	for _, dirs := range [][2]string{{"/odd,a:b", "/x"}, {"/x", "/odd,a:b"}} {
		why := trial.Lacks(t.Context(), e, dirs[0], dirs[1], "", nil)
		if strings.Contains(why, "/odd,a:b") != podman {
			t.Errorf("Podman: %t, %q", podman, why)
		}
	}
	if why := trial.Lacks(t.Context(), e, "/plain", "/a,b", "", nil); why != "" {
		t.Error(why)
	}
}
