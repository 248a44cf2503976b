package git

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/source/git/command"
)

// static serves a repository as any server of files does, with what git update-server-info wrote.
func static(t *testing.T, o *origin) (string, *atomic.Int32) {
	t.Helper()
	o.git("update-server-info")
	var requests atomic.Int32
	files := http.FileServer(http.Dir(o.dir))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			requests.Add(1)
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/.git", &requests
}

// A server of files knows nothing of git and so nothing of partial clones: the whole repository is fetched, by a
// bounded number of processes.
func TestARepositoryOnAServerOfFilesIsMirroredAsAWhole(t *testing.T) {
	for name, pack := range map[string]bool{"loose objects": false, "a pack": true} {
		t.Run(name, func(t *testing.T) {
			o, ids := history(t)
			if pack {
				o.git("repack", "-q", "-a", "-d")
			}
			url, requests := static(t, o)
			x := &realExec{}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			m := openWith(t, Options{Exec: x, Dir: filepath.Join(t.TempDir(), "m"), Location: url})
			got, err := m.Resolve(ctx, []string{ids["three"][:9], "main"})
			if err != nil || got["main"].Commit != ids["merge"] {
				t.Fatalf("%v, %v; the references were asked for %d times", got, err, requests.Load())
			}
			dir := t.TempDir()
			if err := m.Checkout(ctx, ids["three"], dir); err != nil {
				t.Fatal(err)
			}
			if got := layout(t, dir); got["a.txt"] != "2\n" || got["b.txt"] != "3\n" {
				t.Errorf("%v", got)
			}
			if n, fetches := requests.Load(), x.count("fetch"); n > 5 || fetches != 1 {
				t.Errorf("the references were asked for %d times, by %d fetches: %v", n, fetches, x.verbs())
			}
			// A branch is fetched again, and a missing one is reported.
			fresh := o.commit("new", map[string]string{"new.txt": "new\n"})
			o.git("update-server-info")
			if err := m.Fetch(ctx); err != nil {
				t.Fatal(err)
			}
			if got, err := m.Resolve(ctx, []string{"main"}); err != nil || got["main"].Commit != fresh {
				t.Errorf("%v, %v", got, err)
			}
			if _, err := m.Resolve(ctx, []string{strings.Repeat("1234", 10)}); err == nil {
				t.Error("an unknown hash is no error")
			}
			if n := requests.Load(); n > 15 {
				t.Errorf("the references were asked for %d times", n)
			}
		})
	}
}

// A mirror that was partial is made anew when the server leaves nothing out any more.
func TestAPartialMirrorIsMadeAnewFromAServerOfFiles(t *testing.T) {
	o, ids := history(t)
	o.git("config", "uploadpack.allowFilter", "true")
	git, files := overHTTP(t, o, nil), http.FileServer(http.Dir(filepath.Dir(o.dir)))
	var plain atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if plain.Load() {
			files.ServeHTTP(w, r)
			return
		}
		git.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	dir := filepath.Join(t.TempDir(), "m")
	m := openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: s.URL + "/origin/.git"})
	if _, err := m.Resolve(t.Context(), []string{"main"}); err != nil {
		t.Fatal(err)
	}
	if promised, _ := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.promisor")); len(promised) == 0 {
		t.Fatal("the mirror is not partial")
	}
	fresh := o.commit("new", map[string]string{"new.txt": "new\n"})
	o.git("update-server-info")
	plain.Store(true)
	m = openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: s.URL + "/origin/.git"})
	for _, commit := range []string{fresh, ids["three"]} {
		if err := m.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "out")); err != nil {
			t.Error(err)
		}
	}
}

// A server that leaves the content of files out and does not give it later is asked for everything.
func TestAServerThatWithholdsObjects(t *testing.T) {
	o, ids := history(t)
	o.git("config", "uploadpack.allowFilter", "true")
	s := inProtocol(t, o, "0", nil)
	m := openWith(t, Options{Exec: &realExec{}, Dir: filepath.Join(t.TempDir(), "m"), Location: s.URL + "/origin"})
	dir := t.TempDir()
	if err := m.Checkout(t.Context(), ids["three"], dir); err != nil {
		t.Fatal(err)
	}
	if got := layout(t, dir); got["a.txt"] != "2\n" || got["b.txt"] != "3\n" {
		t.Errorf("%v", got)
	}
	if _, err := m.Git.Output(t.Context(), command.Call{Args: []string{"cat-file", "-e", ids["one"] +
		":a.txt"}}); err != nil {
		t.Error("the mirror is partial, so the server gave what it left out")
	}
}
