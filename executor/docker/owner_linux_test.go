package docker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
)

const (
	stateEnv = "DOCKER_TEST_STATE"
	imageEnv = "DOCKER_TEST_IMAGE"
)

func TestMain(m *testing.M) {
	if state := os.Getenv(stateEnv); state != "" {
		haveContainer(state)
	}
	os.Exit(m.Run())
}

// haveContainer is another benchgraph: it runs a container, tells its name, and waits to be killed.
func haveContainer(state string) {
	d := newDocker(container.Open(container.Options{Environ: containertest.Environ(), State: state}))
	p, err := d.Start(context.Background(), executor.Command{
		Argv: []string{"sleep", "1000"}, Dir: "/",
		Container: &executor.Container{Image: os.Getenv(imageEnv), Outward: true},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.(executor.Contained).Container())
	<-p.Done()
	os.Exit(0)
}

// another starts another benchgraph and returns the name of its container, and of its network.
func another(t *testing.T, w world, state string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stateEnv+"="+state, imageEnv+"="+w.image)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	name = strings.TrimSpace(name)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := errors.Join(w.engine.Remove(context.Background(), name),
			w.engine.RemoveNetwork(context.Background(), name)); err != nil {
			t.Error(err)
		}
	})
	return cmd, name
}

func TestReapRemovesOnlyLeftovers(t *testing.T) {
	w := newWorld(t)
	has := func(name string) bool {
		t.Helper()
		_, err := w.engine.Inspect(t.Context(), name)
		if err != nil && !container.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	dead, itsContainer := another(t, w, "/state/of/the/dead")
	_, othersContainer := another(t, w, "/state/of/the/living")
	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = dead.Wait() // killed
	mine := w.start(t, w.shell(serve))

	self := docker.Self()
	boot, rest, _ := strings.Cut(self, ".")
	_, process, _ := strings.Cut(rest, ".")
	labels := func(state, owner string) map[string]string {
		return map[string]string{container.LabelState: state, container.LabelOwner: owner}
	}
	state := w.engine.State()
	crafted := map[string]struct {
		labels map[string]string
		stays  bool
	}{
		"without labels": {nil, true},
		"of another tool": {map[string]string{"com.example.owner": "x", "io.benchgraph": "x"},
			true},
		"of an image node":                    {map[string]string{container.LabelState: state}, true},
		"of an owner in words":                {labels(state, "somebody"), true},
		"of this process":                     {labels(state, self), true},
		"of another namespace":                {labels("/elsewhere", boot+".1."+process), true},
		"of another namespace, of this place": {labels(state, boot+".1."+process), false},
		"from before this machine's start":    {labels("/elsewhere", "another-boot."+rest), false},
	}
	for name, c := range crafted {
		name = strings.NewReplacer(" ", "-", ",", "", "'", "").Replace("benchgraph-test-" + name)
		_, err := w.engine.Create(t.Context(), name, &api.Config{Image: w.image, Cmd: []string{"true"},
			Labels: c.labels}, &api.HostConfig{NetworkMode: "none"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.engine.Remove(context.Background(), name); err != nil {
				t.Error(err)
			}
		})
		defer func() {
			if has(name) != c.stays {
				t.Errorf("a container %s: it is there: %v", name, !c.stays)
			}
		}()
	}

	// Others may reap at the same time, so how many this one removes is not known.
	if _, err := docker.Reap(t.Context(), w.engine); err != nil {
		t.Error(err)
	}
	if has(itsContainer) || !has(othersContainer) || !has(mine.Container()) {
		t.Errorf("of the dead: %v, of the living: %v, mine: %v", has(itsContainer), has(othersContainer),
			has(mine.Container()))
	}
	if err := w.engine.CreateNetwork(t.Context(), itsContainer, nil); err != nil {
		t.Errorf("the network of the dead: %v", err)
	} else if err := w.engine.RemoveNetwork(t.Context(), itsContainer); err != nil {
		t.Error(err)
	}
}
