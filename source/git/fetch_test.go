package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/benchgraph/benchgraph/failure"
)

// overHTTP serves a repository as git's own server does; fails may answer in its place.
func overHTTP(t *testing.T, o *origin, fails func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	return inProtocol(t, o, "2", fails)
}

// inProtocol is overHTTP for a server that speaks one version of git's protocol.
func inProtocol(t *testing.T, o *origin, version string,
	fails func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	o.git("config", "http.receivepack", "false")
	h := &cgi.Handler{
		Path: filepath.Join(o.git("--exec-path"), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(o.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_PROTOCOL=version=" + version},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails == nil || !fails(w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestARepositoryOverHTTPIsMirroredInPart(t *testing.T) {
	o, ids := history(t)
	o.git("config", "uploadpack.allowFilter", "true")
	var requests atomic.Int32
	s := overHTTP(t, o, func(w http.ResponseWriter, r *http.Request) bool {
		requests.Add(1)
		return false
	})
	x := &realExec{}
	m := openWith(t, Options{Exec: x, Dir: filepath.Join(t.TempDir(), "m"), Location: s.URL + "/origin"})
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests before anything was asked", n)
	}
	got, err := m.Resolve(t.Context(), []string{ids["three"][:9], "main"})
	if err != nil || got["main"].Commit != ids["merge"] {
		t.Fatalf("%v, %v", got, err)
	}
	dir := t.TempDir()
	if err := m.Checkout(t.Context(), ids["three"], dir); err != nil {
		t.Fatal(err)
	}
	if got := layout(t, dir); got["a.txt"] != "2\n" || got["b.txt"] != "3\n" {
		t.Errorf("%v", got)
	}
	if n := x.count("fetch"); n != 2 {
		t.Errorf("%d fetches, want one of the history and one of the files: %v", n, x.verbs())
	}
	before := requests.Load()
	if err := m.Checkout(t.Context(), ids["three"], filepath.Join(dir, "again")); err != nil ||
		requests.Load() != before {
		t.Errorf("the second time: %v, %d requests", err, requests.Load()-before)
	}
}

func TestFailuresThatMayPassAreTriedAgain(t *testing.T) {
	o, ids := history(t)
	for name, c := range map[string]struct {
		fail  func(w http.ResponseWriter)
		times int32
		class failure.Class // empty: it succeeds in the end
		want  string
	}{
		"busy twice": {func(w http.ResponseWriter) { w.WriteHeader(503) }, 2, "", ""},
		"too many":   {func(w http.ResponseWriter) { w.WriteHeader(429) }, 1, "", ""},
		"broken off": {func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }, 1, "", ""},
		"busy for ever": {func(w http.ResponseWriter) {
			w.WriteHeader(500)
		}, 1 << 30, failure.Transient, "returned error: 500"},
		"forbidden": {func(w http.ResponseWriter) {
			w.WriteHeader(403)
		}, 1 << 30, failure.Permanent, "returned error: 403"},
		"wants password": {func(w http.ResponseWriter) {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(401)
		}, 1 << 30, failure.Permanent, ""},
		"not there": {func(w http.ResponseWriter) { w.WriteHeader(404) }, 1 << 30, failure.Permanent, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			var left atomic.Int32
			left.Store(c.times)
			s := overHTTP(t, o, func(w http.ResponseWriter, r *http.Request) bool {
				if left.Add(-1) >= 0 {
					c.fail(w)
					return true
				}
				return false
			})
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			var said bytes.Buffer
			x := &realExec{}
			location := strings.Replace(s.URL, "http://", "http://me:sesame@", 1) + "/origin"
			m := openWith(t, Options{Exec: x, Dir: filepath.Join(t.TempDir(), "m"), Location: location, Log: &said})
			got, err := m.Resolve(t.Context(), []string{"main"})
			if c.class == "" {
				if err != nil || got["main"].Commit != ids["merge"] {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			fe, ok := errors.AsType[*FetchError](err)
			if !ok || fe.Class != c.class || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (%+v)", err, fe)
			}
			if n := x.count("ls-remote") + x.count("fetch"); c.class == failure.Transient && n != 4 ||
				c.class == failure.Permanent && n != 1 {
				t.Errorf("%d attempts", n)
			}
			if strings.Contains(err.Error(), "sesame") || strings.Contains(said.String(), "sesame") {
				t.Errorf("the password is told: %v\n%s", err, &said)
			}
			for _, run := range x.runs {
				if strings.Contains(strings.Join(run.Argv, " "), "sesame") {
					t.Errorf("the password is an argument of %v", run.Argv)
				}
			}
		})
	}
}

func TestTheUsersConfigurationAndHooksHaveNoEffect(t *testing.T) {
	o, ids := history(t)
	home := t.TempDir()
	trap := filepath.Join(home, "sprung")
	config := fmt.Sprintf("[core]\n\thooksPath = %s\n\tfsmonitor = touch %s\n\tautocrlf = true\n[url "+
		"\"file:///nowhere\"]\n\tinsteadOf = file://\n", home, trap)
	for _, name := range []string{".gitconfig", "post-checkout", "reference-transaction", "post-index-change"} {
		text := "#!/bin/sh\ntouch " + trap + "\n"
		if name == ".gitconfig" {
			text = config
		}
		o.must(os.WriteFile(filepath.Join(home, name), []byte(text), 0o755))
	}
	o.must(os.WriteFile(filepath.Join(o.dir, ".git/hooks/reference-transaction"), []byte("#!/bin/sh\ntouch "+trap+"\n"),
		0o755))
	o.git("config", "core.fsmonitor", "touch "+trap)
	o.git("config", "uploadpack.packObjectsHook", "touch "+trap)
	env := append(os.Environ(), "HOME="+home, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath",
		"GIT_CONFIG_VALUE_0="+home,
		"GIT_INDEX_FILE=/nowhere", "GIT_WORK_TREE=/nowhere", "GIT_OBJECT_DIRECTORY=/nowhere",
		"GIT_EXTERNAL_DIFF=touch "+trap)
	for name, location := range map[string]string{"path": o.dir, "URL": "file://" + o.dir} {
		m := openWith(t, Options{Exec: &realExec{}, Dir: filepath.Join(t.TempDir(), "m"), Location: location, Env: env})
		dir := t.TempDir()
		patch := "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+one\n"
		if _, err := m.Apply(t.Context(), ids["one"], []byte(patch), dir); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := layout(t, dir)["a.txt"]; got != "one\n" {
			t.Errorf("%s: %q", name, got)
		}
		if _, err := os.Lstat(trap); err == nil {
			t.Fatalf("%s: a hook ran", name)
		}
	}
}

// The configuration of a repository that lacks objects names the program that fetches them.
func TestARepositorysProgramNeverFetches(t *testing.T) {
	o, ids := history(t)
	trap := filepath.Join(t.TempDir(), "sprung")
	head := o.git("rev-parse", "HEAD")
	for name, value := range map[string]string{
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
		"remote.origin.url": "file://" + o.dir, "remote.origin.uploadpack": "touch " + trap + ";",
		"core.sshCommand": "touch " + trap + ";",
	} {
		o.git("config", name, value)
	}
	o.must(os.Remove(filepath.Join(o.dir, ".git", "objects", head[:2], head[2:])))
	m, err := Open(t.Context(), Options{Exec: &realExec{}, Dir: filepath.Join(t.TempDir(), "m"), Location: o.dir,
		Env: os.Environ()})
	if err == nil {
		_, err = m.Resolve(t.Context(), []string{ids["one"], "HEAD", head})
	}
	if err == nil {
		t.Error("what is missing was found")
	}
	if _, err := os.Lstat(trap); err == nil {
		t.Error("a program that the repository names was run")
	}
}

func TestLeftoversOfAKilledProcessAreHarmless(t *testing.T) {
	o, _ := history(t)
	dir := filepath.Join(t.TempDir(), "m")
	location := "file://" + o.dir
	m := openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: location})
	if err := m.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"packed-refs.lock", "config.lock", "refs/heads/main.lock",
		"objects/pack/tmp_pack_abc", "shallow.lock"} {
		o.must(os.WriteFile(filepath.Join(dir, name), nil, 0o444))
	}
	id := o.commit("later", map[string]string{"z": "z"})
	m = openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: location})
	if got, err := m.Resolve(t.Context(), []string{id}); err != nil || got[id].Commit != id {
		t.Errorf("%v, %v", got, err)
	}
	// One that was killed while it made the mirror left it without its mark.
	o.must(os.Remove(filepath.Join(dir, "benchgraph-ready")))
	o.must(os.WriteFile(filepath.Join(dir, "HEAD"), nil, 0o644))
	m = openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: location})
	if got, err := m.Resolve(t.Context(), []string{id}); err != nil || got[id].Commit != id {
		t.Errorf("%v, %v", got, err)
	}
	// And a directory that mirrored something else is emptied.
	other, _ := history(t)
	otherID := other.commit("other", map[string]string{"o": "o"})
	m = openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: other.dir})
	if _, err := m.Resolve(t.Context(), []string{id}); err == nil {
		t.Error("the old history is still there")
	}
	if got, err := m.Resolve(t.Context(), []string{otherID}); err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestManyUseOneMirrorAtOnce(t *testing.T) {
	o, ids := history(t)
	o.git("config", "uploadpack.allowFilter", "true")
	o.git("config", "uploadpack.allowAnySHA1InWant", "true")
	dir := filepath.Join(t.TempDir(), "m")
	names := []string{"one", "two", "three", "merge"}
	dirs := make([]string, 8)
	for i := range dirs {
		dirs[i] = t.TempDir()
	}
	var wg sync.WaitGroup
	var shared *Mirror
	for i, to := range dirs {
		if i%4 == 0 { // two Mirrors, as two processes would have
			shared = openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: "file://" + o.dir})
		}
		m := shared
		wg.Go(func() {
			patch := "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"
			if _, err := m.Apply(t.Context(), ids[names[i%len(names)]], []byte(patch), to); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, to := range dirs {
		if got := layout(t, to); got["new"] != "n\n" || got["a.txt"] == "" {
			t.Errorf("%v", got)
		}
	}
}

func TestABundleWithoutItsBeginningSaysSo(t *testing.T) {
	o, _ := history(t)
	thin := filepath.Join(t.TempDir(), "thin.bundle")
	o.git("bundle", "create", "-q", thin, "main~1..main")
	m, _ := open(t, thin)
	_, err := m.Resolve(t.Context(), []string{"main"})
	fe, ok := errors.AsType[*FetchError](err)
	if !ok || fe.Class != failure.Permanent || !strings.Contains(err.Error(), "prerequisite") {
		t.Errorf("%v", err)
	}
}

// A host at which nobody listens is found out before git is asked, which would wait for minutes where packets are
// dropped.
func TestAHostThatCannotBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	x := &realExec{}
	m := openWith(t, Options{Exec: x, Dir: filepath.Join(t.TempDir(), "m"), Location: "https://me:sesame@" + dead +
		"/x.git"})
	_, err = m.Resolve(t.Context(), []string{"main"})
	fe, ok := errors.AsType[*FetchError](err)
	if !ok || fe.Class != failure.Transient || !strings.Contains(err.Error(), "connection refused") ||
		strings.Contains(err.Error(), "sesame") {
		t.Errorf("%v", err)
	}
	if n := x.count("fetch"); n != 0 {
		t.Errorf("git was asked %d times", n)
	}
}
