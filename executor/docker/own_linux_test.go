package docker_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/family"
)

// programs are the processes of a container that run a program of that name, as this machine counts them; none when the
// engine is not on it.
func programs(t *testing.T, w world, name, program string) (pids []int) {
	t.Helper()
	info, err := w.engine.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		var pid int
		if _, err := fmt.Sscan(dir.Name(), &pid); err != nil {
			continue
		}
		groups, _ := os.ReadFile("/proc/" + dir.Name() + "/cgroup")
		comm, _ := os.ReadFile("/proc/" + dir.Name() + "/comm")
		if strings.Contains(string(groups), info.ID) && string(comm) == program+"\n" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Processes in our containers are own, also if they hide their environment and their parent is the engine. Processes in
// other containers are not, and neither is the engine.
func TestProcessesInOurContainersAreOwn(t *testing.T) {
	w := newWorld(t)
	another := world{newDocker(w.engine), w.engine, w.image}
	bare := w.shell("echo ready; exec env -i sleep 1000")
	ours, theirs := w.start(t, bare), another.start(t, bare)
	within, err := w.Start(t.Context(), executor.Command{Argv: []string{"env", "-i", "sleep", "1001"},
		Container: &executor.Container{Within: ours}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = within.Stop() })
	var mine []int
	for deadline := time.Now().Add(10 * time.Second); len(mine) < 2 &&
		time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		mine = programs(t, w, ours.Container(), "sleep")
	}
	others := programs(t, w, theirs.Container(), "sleep")
	if len(mine) == 0 && len(others) == 0 {
		t.Skip("the engine's processes cannot be seen from here")
	}
	if len(mine) != 2 || len(others) != 1 {
		t.Fatalf("ours %v, of others %v", mine, others)
	}
	for _, pid := range mine {
		if !w.Own(pid) || family.Own(pid) {
			t.Errorf("%d, which hides its environment: by its container %v, else %v", pid, w.Own(pid),
				family.Own(pid))
		}
	}
	if slices.ContainsFunc(others, w.Own) || w.Own(1) {
		t.Error("a stranger's is ours")
	}
	if !w.Own(os.Getpid()) {
		t.Error("this process is not its own")
	}
}
