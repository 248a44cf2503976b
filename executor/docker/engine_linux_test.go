package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	api "github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
)

// patient opens an engine that may take that long to answer.
func patient(d *containertest.Daemon, patience time.Duration) *container.Engine {
	return container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": d.Host()}, State: d.State,
		Patience: patience})
}

// ownWorld is an engine that may be broken.
func ownWorld(t *testing.T, patience time.Duration, o containertest.DaemonOptions) (world, *containertest.Daemon) {
	t.Helper()
	t.Parallel()
	d := containertest.NewDaemon(t, o)
	e := patient(d, patience)
	return world{newDocker(e), e, containertest.Busybox(t, e)}, d
}

func TestAStartWaitsForAnEngineThatIsAway(t *testing.T) {
	w, d := ownWorld(t, 0, containertest.DaemonOptions{})
	told := make(chan error, 10)
	e := container.Open(container.Options{
		Environ: map[string]string{"DOCKER_HOST": d.Host()}, State: d.State,
		Wait: time.Minute, Away: func(err error) { told <- err },
	})
	d.Stop()
	w.Executor = newDocker(e)
	ended := make(chan error)
	for range 2 {
		go func() {
			s, err := executor.Run(t.Context(), w, w.shell("exit 3"))
			if err == nil && s.Code != 3 {
				err = fmt.Errorf("%+v", s)
			}
			ended <- err
		}()
	}
	if err := <-told; !strings.Contains(err.Error(), "no container engine at "+d.Host()) {
		t.Error(err)
	}
	d.Start()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(told) > 0 {
		t.Errorf("told again: %v", <-told)
	}
	d.Stop()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-told
		cancel(errors.New("interrupted"))
	}()
	if _, err := executor.Run(ctx, w, w.shell("exit 3")); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted while it waits: %v", err)
	}
	d.Start()
}

func TestTheEngineGoesAwayAndComesBack(t *testing.T) {
	w, d := ownWorld(t, 0, containertest.DaemonOptions{})
	for name, again := range map[string]func(){
		"restarted":          d.Restart,
		"crashed, restarted": func() { d.Kill(); d.Start() },
	} {
		t.Run(name, func(t *testing.T) {
			p := w.start(t, w.shell(serve))
			within, err := w.Start(t.Context(), executor.Command{Argv: []string{"sleep", "1000"},
				Container: &executor.Container{Within: p}})
			if err != nil {
				t.Fatal(err)
			}
			again()
			if s, err := p.Wait(t.Context()); container.Class(err) != failure.Transient ||
				!strings.Contains(err.Error(), "went away") {
				t.Errorf("%+v, %v (%s)", s, err, container.Class(err))
			}
			if s, err := within.Wait(t.Context()); err == nil {
				t.Errorf("within: %+v", s)
			}
			if _, err := w.engine.Inspect(t.Context(), p.Container()); !container.IsNotFound(err) {
				t.Errorf("the container is left: %v", err)
			}
			if s, out := w.run(t, w.shell("echo works again")); !s.OK() || out != "works again\n" {
				t.Errorf("%+v, %q", s, out)
			}
		})
	}
}

func TestTheEngineGoesAwayForGood(t *testing.T) {
	w, d := ownWorld(t, 4*time.Second, containertest.DaemonOptions{})
	p := w.start(t, w.shell(serve))
	stopped := w.start(t, w.shell(serve))
	d.Kill()
	var gone *container.Unavailable
	if s, err := p.Wait(t.Context()); !errors.As(err, &gone) || container.Class(err) != failure.Infra ||
		!strings.Contains(err.Error(), "nobody listens") || s.OK() {
		t.Errorf("Wait: %+v, %v", s, err)
	}
	if s, err := stopped.Stop(); !errors.As(err, &gone) || s.OK() {
		t.Errorf("Stop: %+v, %v", s, err)
	}
	if _, err := w.Start(t.Context(), w.shell("exit 0")); !errors.As(err, &gone) {
		t.Errorf("Start: %v", err)
	}
}

// An engine that hangs is as bad as one that is gone.
func TestTheEngineHangs(t *testing.T) {
	w, d := ownWorld(t, 2*time.Second, containertest.DaemonOptions{})
	p := w.start(t, w.shell(serve))
	d.Signal(syscall.SIGSTOP)
	defer d.Signal(syscall.SIGCONT)
	var gone *container.Unavailable
	if s, err := p.Wait(t.Context()); !errors.As(err, &gone) ||
		!strings.Contains(err.Error(), "did not answer within 2s") || s.OK() {
		t.Errorf("Wait: %+v, %v", s, err)
	}
	if _, err := w.Start(t.Context(), w.shell("exit 0")); !errors.As(err, &gone) {
		t.Errorf("Start: %v", err)
	}
}

func TestWhyThereIsNoEngine(t *testing.T) {
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: closed}), syscall.Close(fd))
	}
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string][]string{
		"unix://" + dir + "/missing": {"no container engine at unix://" + dir, "there is no such socket",
			"install Docker", "systemctl start docker", "DOCKER_HOST"},
		"unix://" + closed:  {"nobody listens", "systemctl start docker"},
		"tcp://127.0.0.1:1": {"127.0.0.1:1", "refused"},
		"ssh://me@there":    {"not reached by ssh", "ssh -nNL"},
		"nonsense":          {"nonsense", "DOCKER_HOST"},
	} {
		options := container.Options{Environ: map[string]string{"DOCKER_HOST": host}}
		w := world{Executor: newDocker(container.Open(options))}
		_, err := w.Start(t.Context(), w.shell("exit 0"))
		if _, ok := errors.AsType[*container.Unavailable](err); !ok {
			t.Errorf("%s: %v (%T)", host, err, err)
			continue
		}
		for _, want := range want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
}

func TestTheDiskOfTheEngineIsFull(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	w, _ := ownWorld(t, 0, containertest.DaemonOptions{Root: dir + "/root"})
	filler := dir + "/filler"
	t.Cleanup(func() { os.Remove(filler) })
	fill := func() {
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
	}

	serves := w.shell(serve) // runs on while there is no room
	serves.Container.Keep = true
	p := w.start(t, serves)
	t.Cleanup(func() { _ = w.engine.Remove(context.Background(), p.Container()) })
	fill()
	s, out := w.run(t, executor.Command{Argv: []string{"sh", "-c", "echo much >/etc/much"},
		Container: &executor.Container{Within: p}})
	if s.OK() || !strings.Contains(out, "No space left on device") {
		t.Errorf("%+v, %q", s, out)
	}
	_, err := executor.Run(t.Context(), w, w.shell("exit 0"))
	if container.Class(err) != failure.Infra || !strings.Contains(err.Error(), "make room") {
		t.Errorf("%v (%s)", err, container.Class(err))
	}
	if _, err := p.Stop(); err != nil {
		t.Errorf("a container that ends when there is no room: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if s, _ := w.run(t, w.shell("exit 0")); !s.OK() {
		t.Errorf("with room again: %+v", s)
	}
}

// A reader that takes its time holds the program up, and nothing is lost.
func TestOutputIsReadSlowly(t *testing.T) {
	w := newWorld(t)
	cmd := w.shell("head -c 30000000 /dev/zero; echo end")
	var out slow
	cmd.Stdout = &out
	s, err := executor.Run(t.Context(), w, cmd)
	if err != nil || !s.OK() || out.n != 30000004 || !bytes.HasSuffix(out.last, []byte("end\n")) {
		t.Errorf("%+v, %v, %d bytes", s, err, out.n)
	}
}

type slow struct {
	n    int
	last []byte
}

func (s *slow) Write(b []byte) (int, error) {
	if s.n < 1<<20 {
		time.Sleep(10 * time.Millisecond)
	}
	s.n += len(b)
	s.last = append(s.last[:0], b...)
	return len(b), nil
}

// On an engine that maps users, a command that writes to directories of the host runs without that, since what it
// writes would belong to another user; an image is made with users mapped. An engine with NVIDIA's runtime is asked for
// devices by that.
func TestAnEngineThatMapsUsers(t *testing.T) {
	made := make(chan api.HostConfig, 1)
	played := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/info"):
			fmt.Fprint(w, `{"MemTotal": 1000, "SecurityOptions": ["name=seccomp,profile=default", "name=userns"],
				"Runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}`)
		case strings.HasSuffix(r.URL.Path, "/containers/create"):
			var asked struct{ HostConfig api.HostConfig }
			_ = json.NewDecoder(r.Body).Decode(&asked)
			made <- asked.HostConfig
			http.Error(w, `{"message": "enough is known"}`, http.StatusBadRequest)
		}
	}))
	defer played.Close()
	environ := map[string]string{"DOCKER_HOST": "tcp://" + played.Listener.Addr().String()}
	docker := newDocker(container.Open(container.Options{Environ: environ}))
	for _, tt := range []struct {
		user string
		keep bool
		want api.UsernsMode
	}{{me(), false, "host"}, {"", false, ""}, {"0:0", true, ""}} {
		_, err := docker.Start(t.Context(), executor.Command{
			Argv: []string{"true"}, Dir: "/",
			Container: &executor.Container{Image: "x", User: tt.user, Keep: tt.keep, GPUs: []string{"GPU-1"}},
		})
		if err == nil {
			t.Fatal("it runs")
		}
		if got := <-made; got.UsernsMode != tt.want || got.ReadonlyRootfs == tt.keep {
			t.Errorf("%+v: %q, read-only %v", tt, got.UsernsMode, got.ReadonlyRootfs)
		} else if d := cmp.Diff([]api.DeviceRequest{{DeviceIDs: []string{"GPU-1"}, Capabilities: [][]string{{"gpu"}}}},
			got.DeviceRequests); d != "" {
			t.Error(d)
		}
	}
}
