package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
)

// realExec runs real processes and remembers their arguments and environments.
type realExec struct {
	mu   sync.Mutex
	runs []executor.Command
}

func (x *realExec) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	x.mu.Lock()
	x.runs = append(x.runs, cmd)
	x.mu.Unlock()
	return executor.NewHost(executor.HostOptions{Owner: "a test"}).Start(ctx, cmd)
}

// verbs are the git commands that ran, in order.
func (x *realExec) verbs() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var verbs []string
	for _, c := range x.runs {
		verbs = append(verbs, c.Argv[1])
	}
	return verbs
}

func (x *realExec) count(verb string) int {
	n := 0
	for _, v := range x.verbs() {
		if v == verb {
			n++
		}
	}
	return n
}

// origin is a repository made for a test.
type origin struct {
	t   *testing.T
	dir string
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{t: t, dir: filepath.Join(t.TempDir(), "origin")}
	o.must(os.MkdirAll(o.dir, 0o755))
	o.git("init", "-q", "-b", "main")
	return o
}

func (o *origin) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// gitIn runs git in a directory as a user would.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_AUTHOR_DATE=2024-01-01T00:00:00Z",
		"GIT_COMMITTER_DATE=2024-01-01T00:00:00Z")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.Trim(string(out), "\n")
}

func (o *origin) git(args ...string) string { o.t.Helper(); return gitIn(o.t, o.dir, args...) }

// write makes files: name → content; "x:name" is executable, "l:name" a link.
func (o *origin) write(files map[string]string) {
	o.t.Helper()
	for name, content := range files {
		kind, rest, ok := strings.Cut(name, ":")
		if !ok {
			kind, rest = "", name
		}
		path := filepath.Join(o.dir, rest)
		o.must(os.MkdirAll(filepath.Dir(path), 0o755))
		switch kind {
		case "l":
			os.Remove(path)
			o.must(os.Symlink(content, path))
		case "x":
			o.must(os.WriteFile(path, []byte(content), 0o755))
		default:
			o.must(os.WriteFile(path, []byte(content), 0o644))
		}
	}
}

// commit records all files and returns the commit.
func (o *origin) commit(message string, files map[string]string) string {
	o.t.Helper()
	o.write(files)
	o.git("add", "-A")
	o.git("commit", "-q", "--allow-empty", "-m", message)
	return o.git("rev-parse", "HEAD")
}

func open(t *testing.T, location string) (*Mirror, *realExec) {
	t.Helper()
	x := &realExec{}
	m := openWith(t, Options{Exec: x, Dir: filepath.Join(t.TempDir(), "mirror"), Location: location})
	return m, x
}

func openWith(t *testing.T, o Options) *Mirror {
	t.Helper()
	if o.Env == nil {
		o.Env = os.Environ()
	}
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	m.Backoff = time.Millisecond
	return m
}

// layout describes a directory: path → content, "x:path" for executables, "l:path" for links, "path/" for empty
// directories.
func layout(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
			if list, _ := os.ReadDir(path); len(list) == 0 && rel != "." {
				got[rel+"/"] = ""
			}
		case info.Mode()&os.ModeSymlink != 0:
			got["l:"+rel], err = os.Readlink(path)
		default:
			data, rerr := os.ReadFile(path)
			err = rerr
			switch info.Mode().Perm() {
			case 0o644:
				got[rel] = string(data)
			case 0o755:
				got["x:"+rel] = string(data)
			default:
				t.Errorf("%s: mode %v", rel, info.Mode())
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
