//go:build linux

package apptainer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/docker/docker/api/types/container"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/container/trial"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/apptainer"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

// world is an engine with an image.
type world struct {
	*docker.Executor
	engine *container.Engine
	image  string
	dir    string // of images
}

func newWorld(t *testing.T) world {
	t.Helper()
	if apptainer.Find(containertest.Environ()) == "" || os.Getuid() == 0 {
		t.Skip("no Apptainer, or root: container/containertest/engines/run apptainer brings one")
	}
	host, dir := executor.NewHost(executor.HostOptions{}), t.TempDir()
	a, err := apptainer.Open(apptainer.Options{Environ: containertest.Environ(), Dir: dir, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	e := container.Open(container.Options{Environ: a.Environ(map[string]string{}), State: t.TempDir(),
		Pause: time.Millisecond})
	if _, err := e.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	return world{docker.New(e, host), e, containertest.Busybox(t, e), dir}
}

// shell returns a command that runs a script in a container of its own.
func (w world) shell(script string) executor.Command {
	return executor.Command{Argv: []string{"sh", "-euc", script}, Dir: "/tmp", Grace: 50 * time.Millisecond,
		Env: []string{"A=b"}, Container: &executor.Container{Image: w.image}}
}

func (w world) run(t *testing.T, cmd executor.Command) (executor.Status, string) {
	t.Helper()
	return executortest.Output(t, w, cmd)
}

// inBusybox runs each command in a container, with the command's directory at the same place.
type inBusybox struct{ world }

func (b inBusybox) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	cmd.Container = &executor.Container{Image: b.image, User: fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		Mounts: []executor.Mount{{Host: cmd.Dir, Inside: cmd.Dir, Writable: true}}}
	return b.world.Executor.Start(ctx, cmd)
}

func TestApptainerPassesTheSuite(t *testing.T) {
	w := newWorld(t)
	traits := executortest.Traits{NoCount: true, Unordered: true, LateStart: true, Adds: []string{
		"HOME", "LANG", "PS1", "PROMPT_COMMAND", "PWD", "SHLVL", "APPTAINER_APPNAME", "APPTAINER_BIND",
		"APPTAINER_COMMAND", "APPTAINER_CONTAINER", "APPTAINER_ENVIRONMENT", "APPTAINER_NAME", "APPTAINER_NO_EVAL",
		"SINGULARITY_BIND", "SINGULARITY_CONTAINER", "SINGULARITY_ENVIRONMENT", "SINGULARITY_NAME",
		"SINGULARITY_NO_EVAL"}}
	t.Run("suite", func(t *testing.T) {
		executortest.Run(t, traits, func(*testing.T) executor.Executor { return inBusybox{w} })
	})
}

// A container has what it was given and nothing else of this machine, and no privilege.
func TestAContainerOfApptainerIsConfined(t *testing.T) {
	t.Setenv("APPTAINER_BIND", "/usr")
	t.Setenv("SECRET", "of the user")
	w := newWorld(t)
	odd := filepath.Join(t.TempDir(), `a,b "c`)
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(odd, "in"), []byte("input\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := w.shell(`
echo "$A $HOME ${SECRET-unset}"; hostname; cat "/read,only/in"; echo x >/write/out
! touch /x 2>/dev/null; ! touch "/read,only/y" 2>/dev/null; ! test -e /usr; ! test -e ` + w.dir + `
touch /tmp/x /var/tmp/x /run/x /dev/shm/x "$HOME/x"; ls /sys/fs/cgroup
grep -c : /proc/net/dev; ls /proc | grep -c '^[0-9]' | sed 's/^[2-9]$/few/'
sed -n 's/^\(CapEff\|CapBnd\|NoNewPrivs\|Seccomp\):[^1-9]*/\1 /p' /proc/self/status
! unshare -U true 2>/dev/null; ! mount -t tmpfs none /tmp 2>/dev/null; nproc`)
	cmd.Env = append(cmd.Env, "HOME=/home/of it")
	cmd.Container.CPUs = "0"
	cmd.Container.Mounts = []executor.Mount{{Host: odd, Inside: "/read,only"},
		{Host: t.TempDir(), Inside: "/write", Writable: true}}
	s, out := w.run(t, cmd)
	const want = "b /home/of it unset\nbenchgraph\ninput\n1\nfew\nCapBnd \nCapEff \nNoNewPrivs 1\nSeccomp 2\n1\n"
	lines := strings.Split(out, "\n")
	for i, line := range lines { // in which order the kernel lists them
		if strings.HasPrefix(line, "CapEff") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "CapBnd") {
			lines[i], lines[i+1] = lines[i+1], lines[i]
		}
	}
	if got := strings.Join(lines, "\n"); !s.OK() || got != want {
		t.Errorf("%+v\n%s\nwant\n%s", s, got, want)
	}
}

// A server has a loopback for itself, its client, and what runs within it.
func TestAServerAndItsClientByApptainer(t *testing.T) {
	w := newWorld(t)
	server := executortest.Started(t, w, w.shell("nc -ll -p 8000 -e echo hello & echo up; wait"))
	client := w.shell("nc 127.0.0.1 8000 </dev/null || echo refused")
	if _, out := w.run(t, client); !strings.HasSuffix(out, "refused\n") {
		t.Errorf("another container reaches it: %q", out)
	}
	client.Container.Beside = server
	if _, out := w.run(t, client); out != "hello\n" {
		t.Errorf("beside: %q", out)
	}
	within := client
	within.Dir, within.Container = "/bin", &executor.Container{Within: server}
	within.Argv = []string{"sh", "-c", "pwd; echo $A; nc 127.0.0.1 8000 </dev/null; cat; exit 7"}
	within.Stdin = strings.NewReader("input\n")
	if s, out := w.run(t, within); s.Code != 7 || out != "/bin\nb\nhello\ninput\n" {
		t.Errorf("within: %+v, %q", s, out)
	}
	within.Argv, within.Stdin = []string{"sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.02; done"}, nil
	if s, err := executortest.Started(t, w, within).Stop(); err != nil || s.Signal != "SIGKILL" {
		t.Errorf("within, stopped: %+v, %v", s, err)
	}
	within.Argv = []string{"no-such-program"}
	if _, err := executor.Run(t.Context(), w, within); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("within: %v", err)
	}
	if _, err := server.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := executor.Run(t.Context(), w, client); err == nil {
		t.Error("a client beside a server that is gone")
	}
}

// A program that prints the words of Apptainer has failed by itself.
func TestTheWordsOfApptainerAreNoProof(t *testing.T) {
	w := newWorld(t)
	const words = "FATAL:   container creation failed: no room"
	if s, out := w.run(t, w.shell("echo '"+words+"'; exit 255")); s.Code != 255 || out != words+"\n" {
		t.Errorf("%+v, %q", s, out)
	}
}

// A container with a property that Apptainer lacks is refused with a remedy, before the program runs.
func TestUnsupportedContainersAreRefused(t *testing.T) {
	w := newWorld(t)
	enforced, _ := executor.Enforced()
	for name, story := range map[string]struct {
		change       func(*executor.Container)
		words, class string
	}{
		"a change": {func(c *executor.Container) { c.Keep = true }, "push it", "infra"},
		"files":    {func(c *executor.Container) { c.Files = strings.NewReader("") }, "push it", "infra"},
		"limits": {func(c *executor.Container) {
			c.Grants = trial.Grants{Ulimits: map[string]int64{"memlock": -1}}
		}, "ulimits", "infra"},
		"devices": {func(c *executor.Container) {
			c.Grants = trial.Grants{Devices: []string{"/dev/null"}}
		}, "devices", "infra"},
		"rights": {func(c *executor.Container) {
			c.Grants = trial.Grants{Caps: []string{"IPC_LOCK"}}
		}, "IPC_LOCK", "infra"},
		"a user": {func(c *executor.Container) { c.User = "0:0" }, "not as 0:0", "infra"},
		"memory": {func(c *executor.Container) { c.Memory = 1 << 30 }, "bound the job", "infra"},
		"a volume": {func(c *executor.Container) {
			c.Mounts = []executor.Mount{{Volume: "v", Inside: "/v"}}
		}, "volumes", "infra"},
		"a GPU":  {func(c *executor.Container) { c.GPUs = []string{"GPU-1"} }, "/dev/nvidiactl", "infra"},
		"a core": {func(c *executor.Container) { c.CPUs = "1000" }, "not available", "permanent"},
		"no source": {func(c *executor.Container) {
			c.Mounts = []executor.Mount{{Host: "/no", Inside: "/v"}}
		}, "/no", "permanent"},
		"no image": {func(c *executor.Container) { c.Image = "sha256:0" }, "o such image", "infra"},
	} {
		if name == "memory" && enforced.Memory {
			continue
		}
		cmd := w.shell("exit 0")
		story.change(cmd.Container)
		_, err := executor.Run(t.Context(), w, cmd)
		if err == nil || !strings.Contains(err.Error(), story.words) || string(container.Class(err)) != story.class {
			t.Errorf("%s: %v (%s), want %q (%s)", name, err, container.Class(err), story.words, story.class)
		}
	}
}

// published is an image in a registry, which sends its layers with other bytes while it is hostile.
func published(t *testing.T) (repository string, img v1.Image, hostile *atomic.Bool) {
	t.Helper()
	hostile = &atomic.Bool{}
	honest := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hostile.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			answer := httptest.NewRecorder()
			honest.ServeHTTP(answer, r)
			body := answer.Body.Bytes()
			if body[0] != '{' { // a layer
				body[len(body)/2]++
			}
			_, _ = w.Write(body)
			return
		}
		honest.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	_ = w.WriteHeader(&tar.Header{Name: "word", Mode: 0o600, Size: 5})
	_, _ = w.Write([]byte("word\n"))
	_ = w.WriteHeader(&tar.Header{Name: "dev/null", Typeflag: tar.TypeChar, Mode: 0o666, Devmajor: 1, Devminor: 3})
	_ = w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(empty.Image, layer); err == nil {
		img, err = mutate.Config(img, v1.Config{Env: []string{"PATH=/bin", "MODEL=large"}, WorkingDir: "/srv"})
	}
	if err != nil {
		t.Fatal(err)
	}
	repository = strings.TrimPrefix(server.URL, "http://") + "/some/image"
	containertest.Push(t, repository, img)
	return repository, img, hostile
}

// An image comes by its digest, or not at all; its ID is the one that Docker gives it. An image of it with labels needs
// no room of its own, and its files stay until both are removed.
func TestAnImageOfApptainerIsTheOneOfItsDigest(t *testing.T) {
	w := newWorld(t)
	repository, img, hostile := published(t)
	digest, _ := img.Digest()
	id, _ := img.ConfigName()
	hostile.Store(true)
	if _, err := w.engine.Pull(t.Context(), repository, digest.String(), nil); err == nil {
		t.Fatal("other bytes were taken")
	}
	if roots, _ := filepath.Glob(w.dir + "/root-*"); len(roots) != 1 { // that of busybox
		t.Errorf("%q are left", roots)
	}
	hostile.Store(false)
	got, err := w.engine.Pull(t.Context(), repository, digest.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != id.String() || got.Dir != "/srv" || fmt.Sprint(got.Env) != "[PATH=/bin MODEL=large]" || !got.Brought {
		t.Errorf("%+v, want %s", got, id)
	}
	labels := map[string]string{container.LabelKey: "key"}
	made, err := w.engine.Create(t.Context(), "inert", &api.Config{Image: id.String()}, &api.HostConfig{})
	if err != nil {
		t.Fatal(err)
	}
	labelled, err := w.engine.Commit(t.Context(), made, api.CommitOptions{Config: &api.Config{Labels: labels}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Remove(t.Context(), made); err != nil {
		t.Error(err)
	}
	if err := w.engine.RemoveImage(t.Context(), id.String()); err != nil {
		t.Error(err)
	}
	all, err := w.engine.Images(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != labelled || all[0].Labels[container.LabelKey] != "key" {
		t.Errorf("%+v, %v", all, err)
	}
	files, _ := filepath.Glob(w.dir + "/root-*/word")
	if len(files) != 1 {
		t.Errorf("files of the image: %q", files)
	}
	if err := w.engine.RemoveImage(t.Context(), labelled); err != nil {
		t.Error(err)
	}
	if files, _ := filepath.Glob(w.dir + "/root-*/word"); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
}
