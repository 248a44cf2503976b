package container_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/container/dockerfile"
)

// project writes files; one that ends in a slash is a directory, and "-> x" is the content of a link.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		link, isLink := strings.CutPrefix(text, "-> ")
		var err error
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(file, 0o755)
		case isLink:
			err = os.Symlink(link, file)
		default:
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// build builds a project whose Dockerfile may name the small image "busybox"; what it makes is removed with the test.
func build(ctx context.Context, t *testing.T, e *container.Engine, dir string,
	change func(*container.BuildSpec)) (container.Image, string, error) {
	t.Helper()
	files, err := dockerfile.Context(dir, "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	spec := container.BuildSpec{
		Dir: dir, Files: files, Dockerfile: "Dockerfile", Log: &log,
		Labels: map[string]string{container.LabelKey: t.Name()},
		Pins:   map[string]string{"busybox": containertest.Busybox(t, e)},

		Network: containertest.IsPodman(t, e), // else it builds nothing
	}
	if change != nil {
		change(&spec)
	}
	img, err := e.Build(ctx, spec)
	if err == nil {
		t.Cleanup(func() {
			err := e.RemoveImage(context.Background(), img.ID)
			if _, gone := errors.AsType[*container.NoImage](err); err != nil && !gone {
				t.Error(err)
			}
		})
	}
	return img, log.String(), err
}

func TestBuild(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	dir := project(t, map[string]string{
		"Dockerfile": `ARG BASE=nothing
FROM ${BASE} AS made
ARG WORD
COPY . /ctx
RUN --mount=type=tmpfs,target=/t echo "said $WORD" && ls -l /ctx && test ! -e /ctx/secret.txt && cat /ctx/link && test "$(ls /sys/class/net)" = lo
FROM scratch
COPY --from=made /ctx/a.txt /a.txt
COPY --from=busybox /bin/busybox /busybox
ENTRYPOINT ["/busybox"]
`,
		".dockerignore": "*.txt\n!a.txt\n",
		"a.txt":         "a", "secret.txt": "b", "link": "-> a.txt", "empty/": "",
	})
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	word := rand.Text() // nothing that the builder has done before
	args := map[string]string{"BASE": "busybox", "WORD": word}
	parsed, err := dockerfile.Parse(text, args)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"busybox"}, parsed.Images()); d != "" {
		t.Fatal(d)
	}
	img, log, err := build(t.Context(), t, e, dir, func(s *container.BuildSpec) { s.Args, s.Network = args, false })
	if containertest.IsPodman(t, e) {
		if err == nil || !strings.Contains(err.Error(), "network = true") {
			t.Errorf("a build that Podman would give a network: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if !strings.Contains(log, "said "+word+"\n") || !strings.Contains(log, "COPY --from=made") {
		t.Error(log)
	}
	if img.Labels[container.LabelKey] != t.Name() || !slices.Equal(img.Entrypoint, []string{"/busybox"}) ||
		len(img.Layers) != 2 || len(img.Tags) != 0 {
		t.Errorf("%+v", img)
	}
}

// An image that came from a registry is built on under its digest, and the registry is not asked again.
func TestBuildOnAPulledImage(t *testing.T) {
	t.Parallel()
	e := open(t, containertest.Engine(t), nil)
	f := newFaults(t)
	p := publish(t, f.Host)
	base, err := e.Pull(t.Context(), p.ref, p.digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	dropped(t, e, base.ID)
	f.set(times(always, nil, status(500, "UNKNOWN")))
	dir := project(t, map[string]string{"Dockerfile": "FROM " + p.ref + "\nCOPY Dockerfile /\n"})
	img, log, err := build(t.Context(), t, e, dir, func(s *container.BuildSpec) {
		s.Pins = map[string]string{p.ref: base.ID}
	})
	if err != nil || len(img.Layers) != 4 || !slices.Equal(img.Layers[:3], base.Layers) ||
		!strings.Contains(log, "@"+p.digest) {
		t.Errorf("%+v, %v\n%s", img, err, log)
	}
	if n := f.count(""); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// The step that failed is named, with its exit status; a mistake in the Dockerfile is told as it is.
func TestBuildSaysWhichStepFailed(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	for name, c := range map[string]struct {
		dockerfile string
		step       string
		code       int
		says       string
	}{
		"command": {"FROM busybox\nRUN true\nRUN echo before; exit 42\nRUN true\n", "RUN echo before; exit 42", 42,
			"exit status 42"},
		"killed": {"FROM busybox\nRUN sleep 60 & kill -9 $!; wait $!\n", "RUN sleep 60 & kill -9 $!; wait $!", 137,
			"exit status 137"},
		"no program":  {"FROM busybox\nRUN nothing-of-that-name\n", "RUN nothing-of-that-name", 127, "exit status 127"},
		"no file":     {"FROM busybox\nCOPY missing /\n", "COPY missing /", 0, "missing"},
		"instruction": {"FROM busybox\nFLY away\n", "", 0, "FLY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			img, log, err := build(t.Context(), t, e, project(t, map[string]string{"Dockerfile": c.dockerfile}), nil)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatal(img, err)
			}
			failed, ok := errors.AsType[*container.StepError](err)
			if c.step == "" {
				if ok && !containertest.IsPodman(t, e) { // which says where, too
					t.Errorf("%+v", failed)
				}
				return
			}
			if !ok || !strings.HasSuffix(failed.Step, c.step) || failed.Code != c.code {
				t.Errorf("%+v, %v", failed, err)
			}
			if name == "command" && !strings.Contains(log, "before\n") {
				t.Error(log)
			}
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	for name, c := range map[string]struct{ dockerfile, says string }{
		"what is not pinned": {"FROM busybox AS a\nFROM somewhere.example/else\n",
			"somewhere.example/else of the Dockerfile is not pinned"},
		"no value": {"ARG X\nFROM ${X}\n", "argument X has no value"},
		"what comes from afar": {"FROM busybox\nADD --chown=0:0 https://example.com/x /x\n",
			"line 2: ADD https://example.com/x is fetched by the builder"},
		"what may come from afar": {"FROM busybox\nARG U\nADD [\"$U\", \"/x\"]\n", "line 3: ADD $U"},
	} {
		_, _, err := build(t.Context(), t, e, project(t, map[string]string{"Dockerfile": c.dockerfile}),
			func(s *container.BuildSpec) { s.Network = false })
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := project(t, map[string]string{"Dockerfile": "FROM busybox\nCOPY a /\n", "a": "1"})
	_, _, err := build(t.Context(), t, e, dir, func(s *container.BuildSpec) {
		s.Files[slices.IndexFunc(s.Files, func(f dockerfile.ContextFile) bool {
			return f.Path == "a"
		})].SHA256 = strings.Repeat("0", 64)
	})
	if changed, ok := errors.AsType[*dockerfile.ContextChanged](err); !ok || changed.Path != "a" {
		t.Error(err)
	}
}

// A build that is cancelled ends at once, and with it what it ran.
func TestBuildIsCancelled(t *testing.T) {
	t.Parallel()
	e := containertest.Engine(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	begun := make(chan struct{})
	dir := project(t, map[string]string{"Dockerfile": "FROM busybox\nRUN echo begun; exec sleep 1000.25\n"})
	go func() {
		<-begun
		cancel(cause)
	}()
	_, _, err := build(ctx, t, e, dir, func(s *container.BuildSpec) { s.Log = onText{"begun\n", begun} })
	if !errors.Is(err, cause) {
		t.Error(err)
	}
	for deadline := time.Now().Add(20 * time.Second); running(t,
		"sleep\x001000.25"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			if containertest.IsPodman(t, e) {
				t.Skip("Podman lets its command run on")
			}
			t.Fatal("its command still runs")
		}
	}
}

// onText closes a channel when a text is written.
type onText struct {
	text string
	seen chan struct{}
}

func (o onText) Write(p []byte) (int, error) {
	if string(p) == o.text {
		close(o.seen)
	}
	return len(p), nil
}

// running says whether this machine has a process of that command line.
func running(t *testing.T, argv string) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(file string) bool {
		text, _ := os.ReadFile(file)
		return strings.HasPrefix(string(text), argv)
	})
}

func TestContext(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"Dockerfile": "FROM scratch\n", "docker/Other": "FROM scratch\n", "docker/Other.dockerignore": "a\n",
		".dockerignore": "# all of it\n**/*.o\nbuild\n!build/keep\nDockerfile\n/a\n",
		"a":             "x", "b": "x", "sub/a": "x", "sub/x.o": "x", "build/drop": "x", "build/keep": "x",
		"out": "-> /etc/passwd",
	})
	for file, want := range map[string][]string{
		"Dockerfile": {".dockerignore", "Dockerfile", "b", "build/keep", "docker", "docker/Other",
			"docker/Other.dockerignore", "out", "sub", "sub/a"},
		"docker/Other": {".dockerignore", "Dockerfile", "b", "build", "build/drop", "build/keep", "docker",
			"docker/Other", "docker/Other.dockerignore", "out", "sub", "sub/a", "sub/x.o"},
	} {
		files, err := dockerfile.Context(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Path)
			if f.Path == "out" && (f.Link != "/etc/passwd" || f.Mode.Type() != fs.ModeSymlink) {
				t.Errorf("%+v", f)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", file, d)
		}
	}
	for _, file := range []string{"missing", "../Dockerfile", "/etc/passwd"} {
		if files, err := dockerfile.Context(dir, file); err == nil {
			t.Errorf("%s: %v", file, files)
		}
	}
}
