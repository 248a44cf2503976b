package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

// me is the user of this process, as whom a container may write to what it owns.
func me() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// inBusybox runs each command in a container of an image, with the command's directory at the same place.
type inBusybox struct {
	executor.Executor
	image string
}

func (b inBusybox) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	cmd.Container = &executor.Container{Image: b.image, User: me(),
		Mounts: []executor.Mount{{Host: cmd.Dir, Inside: cmd.Dir, Writable: true}}}
	return b.Executor.Start(ctx, cmd)
}

func newDocker(e *container.Engine) *docker.Executor {
	return docker.New(e, executor.NewHost(executor.HostOptions{}))
}

func TestDockerPassesTheSuite(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	image := containertest.Busybox(t, e)
	// The last two are Podman's, which resets the connection of input that is not read.
	traits := executortest.Traits{Adds: []string{"HOSTNAME", "HOME", "TERM", "container"}, NoCount: true,
		Unordered: true, LateStart: true, ReadsAll: containertest.IsPodman(t, e)}
	t.Run("suite", func(t *testing.T) {
		executortest.Run(t, traits, func(*testing.T) executor.Executor { return inBusybox{newDocker(e), image} })
	})
}

func TestDockerLeavesTheHostToAnother(t *testing.T) {
	e := container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": "unix:///nowhere"}})
	if s, err := executor.Run(t.Context(), newDocker(e), executortest.Shell(t, "exit 3")); err != nil || s.Code != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// world is an engine with an image, on which stories are told at the same time.
type world struct {
	*docker.Executor
	engine *container.Engine
	image  string
}

func newWorld(t *testing.T) world {
	t.Helper()
	t.Parallel()
	e := containertest.Engine(t)
	return world{newDocker(e), e, containertest.Busybox(t, e)}
}

// shell returns a command that runs script in a container of its own.
func (w world) shell(script string) executor.Command {
	return executor.Command{Argv: []string{"sh", "-euc", script}, Dir: "/tmp", Grace: 50 * time.Millisecond,
		Container: &executor.Container{Image: w.image}}
}

// run runs cmd to its end and returns what it printed.
func (w world) run(t *testing.T, cmd executor.Command) (executor.Status, string) {
	t.Helper()
	return executortest.Output(t, w, cmd)
}

// start starts cmd and waits until it has printed a line.
func (w world) start(t *testing.T, cmd executor.Command) executor.Contained {
	t.Helper()
	return executortest.Started(t, w, cmd).(executor.Contained)
}

const serve = "echo up; while :; do sleep 0.02; done"

func TestAContainerIsConfined(t *testing.T) {
	w := newWorld(t)
	in, out := t.TempDir(), t.TempDir()
	cmd := w.shell(`
		grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp)' /proc/self/status
		touch /in/new 2>/dev/null && echo an input was changed
		touch /etc/new /new 2>/dev/null && echo the root was changed
		touch /tmp/new /var/tmp/new /run/new /dev/shm/new
		echo result >/out/new
		ls /sys/class/net
		nproc
		df -k /dev/shm | tail -n 1
		cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || :
		cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.swap.max || :
		cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null || :
		cat /proc/1/comm
		id -u
		hostname
		grep -w benchgraph /etc/hosts`)
	cmd.Container.Mounts = []executor.Mount{{Host: in, Inside: "/in"}, {Host: out, Inside: "/out", Writable: true}}
	cmd.Container.CPUs, cmd.Container.Memory, cmd.Container.User = "0", 256<<20, me()
	_, got := w.run(t, cmd)
	for _, want := range []string{
		"CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n", "\nlo\n1\n",
		" 131072 ",
		"\n268435456\n", "\n32768\n", "-init\n", fmt.Sprintf("\n%d\nbenchgraph\n127.0.0.1\tbenchgraph\n",
			os.Getuid()),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	// as cgroups v1 and v2 tell it
	if !strings.Contains(got, "\n268435456\n268435456\n") && !strings.Contains(got, "\n268435456\n0\n") {
		t.Errorf("it may use swap beside its memory:\n%s", got)
	}
	if strings.Contains(got, "changed") {
		t.Error(got)
	}
	if text, err := os.ReadFile(out + "/new"); err != nil || string(text) != "result\n" {
		t.Errorf("%q, %v", text, err)
	}
	cmd = w.shell("grep ^CapEff /proc/self/status")
	cmd.Container.Caps = []string{"CHOWN"}
	if _, got := w.run(t, cmd); got != "CapEff:\t0000000000000001\n" {
		t.Errorf("with one capability: %s", got)
	}
	cmd = w.shell("head -c0 /dev/loop-control && ls /dev/loop-control; ls /dev/kmsg 2>/dev/null; true")
	cmd.Container.Devices = []string{"/dev/loop-control"}
	if _, got := w.run(t, cmd); got != "/dev/loop-control\n" {
		t.Errorf("with one device: %s", got)
	}
}

// A directory of the host may have any name that its user gave it.
func TestMountsOfPathsWithOddCharacters(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a,b", "a, \"b\"", "a,readonly=false", "a:b", "a b=c"} {
		in, out := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), name)
		for _, dir := range []string{in, out} {
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(in, "file"), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := w.shell(`cat in/file; touch in/new 2>/dev/null && echo changed; echo result > "$1/new"`)
		cmd.Argv, cmd.Dir = append(cmd.Argv, "sh", "/benchgraph/"+name), "/benchgraph"
		cmd.Container.User = me()
		cmd.Container.Mounts = []executor.Mount{{Host: in, Inside: "/benchgraph/in"},
			{Host: out, Inside: "/benchgraph/" + name, Writable: true}}
		if s, got := w.run(t, cmd); !s.OK() || got != "text" {
			t.Errorf("%s: %+v, %q", name, s, got)
		}
		if text, err := os.ReadFile(filepath.Join(out, "new")); err != nil || string(text) != "result\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestNoContainerGetsTheEngine(t *testing.T) {
	w := newWorld(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/var/run", link); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"/var/run/docker.sock", "/run/docker.sock", "/var/run", "/run/", "/var/../run", "/",
		link, link + "/docker.sock"} {
		cmd := w.shell("exit 0")
		cmd.Container.Mounts = []executor.Mount{{Host: host, Inside: "/x"}}
		_, err := w.Start(t.Context(), cmd)
		if _, ok := errors.AsType[*executor.Unsupported](err); !ok {
			t.Errorf("%s was mounted: %v", host, err)
		}
	}
}

func TestSecretsInPiecesOnBothStreams(t *testing.T) {
	w := newWorld(t)
	cmd := w.shell("printf hf_se; sleep 0.2; printf x >&2; sleep 0.2; printf cret")
	cmd.Secrets = []string{"hf_secret"}
	if _, out := w.run(t, cmd); out != "x***" {
		t.Errorf("%q", out)
	}
}

func TestFilesAndAnImageOfThem(t *testing.T) {
	w := newWorld(t)
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	text := "#!/bin/sh\necho brought\n"
	err := errors.Join(archive.WriteHeader(&tar.Header{Name: "opt/tool", Mode: 0o755, Size: int64(len(text))}),
		second(archive.Write([]byte(text))), archive.Close())
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.shell("/opt/tool; echo made >/etc/made; rm /etc/group")
	cmd.Container.Files, cmd.Container.Keep = &files, true
	p, err := w.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Wait(t.Context()); err != nil || !s.OK() {
		t.Fatal(s, err)
	}
	name := p.(executor.Contained).Container()
	changes, err := w.engine.Changes(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, c := range changes {
		kinds[c.Path] = c.Kind.String()
	}
	if kinds["/opt/tool"] != "A" || kinds["/etc/made"] != "A" || kinds["/etc/group"] != "D" || kinds["/etc"] != "C" {
		t.Errorf("changes: %v", kinds)
	}
	err = w.engine.CopyFrom(t.Context(), name, "/etc/made", func(r io.Reader) error {
		archive := tar.NewReader(r)
		if _, err := archive.Next(); err != nil {
			return err
		}
		if text, err := io.ReadAll(archive); err != nil || string(text) != "made\n" {
			t.Errorf("%q, %v", text, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	image, err := w.engine.Commit(t.Context(), name,
		api.CommitOptions{Changes: []string{"LABEL io.benchgraph.test=committed", "ENTRYPOINT []"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { containertest.RemoveImage(t, w.engine, image) })
	if err := w.engine.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	again := w.shell("cat /etc/made; /opt/tool; test ! -e /etc/group")
	again.Container.Image = image
	if s, out := w.run(t, again); !s.OK() || out != "made\nbrought\n" {
		t.Errorf("%+v, %q", s, out)
	}
}

func second[T any](_ T, err error) error { return err }

func TestAServerIsReachedByItsClientAlone(t *testing.T) {
	w := newWorld(t)
	cmd := w.shell("nc -ll -p 8000 -e echo hello & echo up; wait")
	cmd.Container.Outward = true
	server := w.start(t, cmd)
	info, err := w.engine.Inspect(t.Context(), server.Container())
	if err != nil || len(info.NetworkSettings.Networks) != 1 {
		t.Fatalf("%+v, %v", info.NetworkSettings, err)
	}
	var address string
	for _, n := range info.NetworkSettings.Networks {
		address = n.IPAddress
	}
	client := w.shell("nc 127.0.0.1 8000 </dev/null")
	client.Container.Beside = server
	if _, out := w.run(t, client); out != "hello\n" {
		t.Errorf("beside: %q", out)
	}
	within := executor.Command{Argv: []string{"nc", "127.0.0.1", "8000"},
		Container: &executor.Container{Within: server}}
	if s, out := w.run(t, within); !s.OK() || out != "hello\n" {
		t.Errorf("within: %+v, %q", s, out)
	}
	other := w.shell("nc -w 1 " + address + " 8000 </dev/null 2>/dev/null || echo refused")
	other.Container.Outward = true
	if _, out := w.run(t, other); out != "refused\n" {
		t.Errorf("another container reaches it: %q", out)
	}
	if _, err := server.Stop(); err != nil {
		t.Error(err)
	}
	client.Container.Beside = server
	if _, err := executor.Run(t.Context(), w, client); err == nil {
		t.Error("a client beside a server that is gone")
	}
}

// Another network namespace plays the network beyond this machine.
func TestOutwardNetwork(t *testing.T) {
	w := newWorld(t)
	outside := containertest.Outside(t)
	for _, test := range []struct {
		outward bool
		want    string
	}{
		{false, "no way out\n"},
		{true, "the world\n"},
	} {
		t.Run(test.want, func(t *testing.T) {
			cmd := w.shell("nc -w 1 " + outside + " </dev/null 2>/dev/null || echo no way out")
			cmd.Container.Outward = test.outward
			if s, out := w.run(t, cmd); !s.OK() || out != test.want {
				t.Errorf("%+v, %q", s, out)
			}
		})
	}
}

func TestWithinAContainer(t *testing.T) {
	w := newWorld(t)
	host := w.start(t, w.shell(serve))
	inside := func(script string) executor.Command {
		return executor.Command{Argv: []string{"sh", "-euc", script}, Dir: "/bin", Grace: 50 * time.Millisecond,
			Env: []string{"A=b"}, Container: &executor.Container{Within: host}}
	}
	cmd := inside("pwd; echo $A; cat; exit 7")
	cmd.Stdin = strings.NewReader("input\n")
	if s, out := w.run(t, cmd); s.Code != 7 || out != "/bin\nb\ninput\n" {
		t.Errorf("%+v, %q", s, out)
	}
	if s, _ := w.run(t, inside("kill -SEGV $$; sleep 1000")); s.Signal != "SIGSEGV" || s.Code != -1 {
		t.Errorf("%+v", s)
	}
	for _, test := range []struct{ script, signal string }{
		{"echo up; exec sleep 1000", "SIGTERM"},
		{"trap '' TERM; " + serve, "SIGKILL"},
	} {
		p := w.start(t, inside(test.script))
		if s, err := p.Stop(); err != nil || s.Signal != test.signal {
			t.Errorf("%s: %+v, %v", test.script, s, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("late"))
	defer cancel()
	if _, err := executor.Run(ctx, w, inside("sleep 1000")); err == nil || err.Error() != "late" {
		t.Error(err)
	}
	missing := inside("")
	missing.Argv = []string{"no-such-program"}
	_, err := executor.Run(t.Context(), w, missing)
	if start, ok := errors.AsType[*executor.StartError](err); !ok || start.Program != "no-such-program" ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v (%T)", err, err)
	}
	if s, out := w.run(t, inside("(sleep 1000 >/dev/null 2>&1 &); echo left one behind")); !s.OK() ||
		out != "left one behind\n" {
		t.Errorf("%+v, %q", s, out)
	}
	p, err := w.Start(t.Context(), inside("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Stop(); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Wait(t.Context()); err == nil && s.OK() {
		t.Errorf("outlived its container: %+v", s)
	}
}

func TestTooMuchMemory(t *testing.T) {
	w := newWorld(t)
	eat := "dd if=/dev/zero of=/dev/null bs=512M count=1"
	for script, code := range map[string]int{"exec " + eat: -1, eat + " || exit 5": 5, eat + " || :": 0} {
		cmd := w.shell(script)
		cmd.Container.Memory = 64 << 20
		s, out := w.run(t, cmd)
		known := s.OOM || s.OK() // the engine may hear of the kill later; who succeeded is not asked about
		if !known || s.Code != code || code < 0 && s.Signal != "SIGKILL" {
			t.Errorf("%s: %+v\n%s", script, s, out)
		}
	}
	if s, _ := w.run(t, w.shell("kill -KILL $$")); s.OOM || s.Signal != "SIGKILL" {
		t.Errorf("killed by itself: %+v", s)
	}
}

func TestSomebodyElseEndsAContainer(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, w.shell(serve))
	if err := w.engine.Signal(t.Context(), p.Container(), "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Wait(t.Context()); err != nil || s.Signal != "SIGKILL" || s.OOM {
		t.Errorf("docker kill: %+v, %v", s, err)
	}
	p = w.start(t, w.shell(serve))
	if err := w.engine.Remove(t.Context(), p.Container()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err == nil || container.Class(err) != "transient" ||
		!strings.Contains(err.Error(), "removed by somebody else") {
		t.Errorf("docker rm -f: %v", err)
	}
}

func TestStartErrorsInContainersExplain(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name   string
		change func(*executor.Command)
		want   []string
		class  string
	}{
		{"no image", func(c *executor.Command) {
			c.Container.Image = "sha256:" + strings.Repeat("0", 64)
		}, []string{"o such image", "apply again"}, "infra"},
		{"no GPUs", func(c *executor.Command) {
			c.Container.GPUs = []string{"GPU-1"}
		}, []string{"gpu", "install the NVIDIA Container Toolkit"}, "infra"},
		{"no such core", func(c *executor.Command) {
			c.Container.CPUs = "4000"
		}, []string{"4000", "name cores that the machine has"}, "permanent"},
		{"no such user", func(c *executor.Command) {
			c.Container.User = "nobody-knows"
		}, []string{"sh: ", "nobody-knows"}, "permanent"},
		{"nothing to mount", func(c *executor.Command) {
			c.Container.Mounts = []executor.Mount{{Host: "/no/such", Inside: "/x"}}
		}, []string{"/no/such", "at the same path as on the host"}, "infra"},
		{"not executable", func(c *executor.Command) {
			c.Argv = []string{"/etc/passwd"}
		}, []string{"/etc/passwd: ", "Permission denied", "chmod +x"}, "permanent"},
		{"not there", func(c *executor.Command) {
			c.Argv = []string{"./run"}
		}, []string{"./run: ", "No such file", "in the image"}, "permanent"},
		{"beside the host", func(c *executor.Command) {
			c.Container.Beside = hostProcess(t)
		}, []string{"in no container"}, "permanent"},
		{"within the host", func(c *executor.Command) {
			c.Container.Within = hostProcess(t)
		}, []string{"in no container"}, "permanent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := w.shell("exit 0")
			test.change(&cmd)
			if test.name == "nothing to mount" && containertest.IsPodman(t, w.engine) {
				t.Skip("Podman makes the directory")
			}
			_, err := executor.Run(t.Context(), w, cmd)
			if err == nil {
				t.Fatal("it ran")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if class := container.Class(err); string(class) != test.class {
				t.Errorf("%v is %s", err, class)
			}
		})
	}
}

func hostProcess(t *testing.T) executor.Process {
	t.Helper()
	p, err := executor.NewHost(executor.HostOptions{}).Start(t.Context(),
		executor.Command{Argv: []string{"/bin/true"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Whenever a start is given up, nothing is left; that is what the end of the test looks for.
func TestAStartGivenUpLeavesNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i*i)*time.Millisecond/2,
			errors.New("given up"))
		cmd := w.shell("sleep 1000")
		cmd.Container.Outward = i%2 == 0
		if _, err := executor.Run(ctx, w, cmd); err == nil || err.Error() != "given up" {
			t.Errorf("after %d ms: %v", i*i/2, err)
		}
		cancel()
	}
}
