package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// history makes a repository with a branch, a tag, a merge and a commit that no branch leads to.
func history(t *testing.T) (o *origin, ids map[string]string) {
	o = newOrigin(t)
	ids = map[string]string{}
	ids["one"] = o.commit("one", map[string]string{"a.txt": "1\n"})
	ids["two"] = o.commit("two", map[string]string{"a.txt": "2\n"})
	o.git("tag", "-a", "-m", "release", "v1.0")
	o.git("checkout", "-q", "-b", "feature/fast-path")
	ids["three"] = o.commit("three", map[string]string{"b.txt": "3\n"})
	o.git("checkout", "-q", "main")
	ids["four"] = o.commit("four", map[string]string{"c.txt": "4\n"})
	o.git("merge", "-q", "--no-ff", "-m", "merge", "feature/fast-path")
	ids["merge"] = o.git("rev-parse", "HEAD")
	return o, ids
}

func TestResolveUnderstandsTheSpellingsOfPeople(t *testing.T) {
	o, ids := history(t)
	bundle := filepath.Join(t.TempDir(), "history.bundle")
	o.git("bundle", "create", "-q", bundle, "--all", "HEAD")
	bare := filepath.Join(t.TempDir(), "bare.git")
	o.git("clone", "-q", "--bare", o.dir, bare)
	worktree := filepath.Join(t.TempDir(), "linked")
	o.git("worktree", "add", "-q", "--detach", worktree, "main")

	want := map[string]string{
		ids["two"]: "two", ids["two"][:10]: "two", ids["two"][:10] + "^": "one", "main": "merge",
		"refs/heads/main": "merge",
		"main^":           "four", "main^2": "three", "main~2": "two", "v1.0": "two", "v1.0~1": "one", "HEAD": "merge",
		"HEAD^^2~0": "",
		"@":         "merge", "feature/fast-path": "three",
	}
	delete(want, "HEAD^^2~0") // four has one parent: told apart below
	revs := slices.Sorted(func(yield func(string) bool) {
		for r := range want {
			if !yield(r) {
				return
			}
		}
	})
	for name, location := range map[string]string{"work tree": o.dir, "bare": bare, "linked work tree": worktree,
		"bundle": bundle, "URL": "file://" + o.dir} {
		t.Run(name, func(t *testing.T) {
			m, x := open(t, location)
			got, err := m.Resolve(t.Context(), revs)
			if err != nil {
				t.Fatal(err)
			}
			for rev, id := range want {
				if got[rev].Commit != ids[id] {
					t.Errorf("%s: commit %s, want %s (%s)", rev, got[rev].Commit, ids[id], id)
				}
				if tree := o.git("rev-parse", ids[id]+"^{tree}"); got[rev].Tree != tree {
					t.Errorf("%s: tree %s, want %s", rev, got[rev].Tree, tree)
				}
			}
			// All of them were one question, asked before and after the one fetch.
			if n := x.count("cat-file"); n > 2 {
				t.Errorf("%d cat-file processes: %v", n, x.verbs())
			}
			if n := x.count("fetch"); n > 1 {
				t.Errorf("%d fetches", n)
			}
		})
	}
}

func TestTheMirrorFetchesOnlyMissingObjects(t *testing.T) {
	o, ids := history(t)
	dir := filepath.Join(t.TempDir(), "mirror")
	location := "file://" + o.dir
	first := openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: location})
	if _, err := first.Resolve(t.Context(), []string{"main"}); err != nil {
		t.Fatal(err)
	}
	x := &realExec{}
	again := openWith(t, Options{Exec: x, Dir: dir, Location: location, Offline: true})
	got, err := again.Resolve(t.Context(), []string{ids["one"], "v1.0"})
	if err != nil || got["v1.0"].Commit != ids["two"] {
		t.Fatalf("%v, %v", got, err)
	}
	if n := x.count("fetch") + x.count("init"); n != 0 {
		t.Errorf("ran %v", x.verbs())
	}
	_, err = again.Resolve(t.Context(), []string{"nowhere"})
	if fe, ok := errors.AsType[*FetchError](err); !ok || !strings.Contains(fe.Error(), "offline") {
		t.Errorf("offline: %v", err)
	}

	// A branch that moved is seen after a Fetch; a local repository is followed by every new Mirror.
	five := o.commit("five", map[string]string{"a.txt": "5\n"})
	if err := first.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := first.Resolve(t.Context(), []string{"main"}); err != nil || got["main"].Commit != five {
		t.Errorf("after Fetch: %v, %v", got, err)
	}
}

func TestALocalRepositoryIsBorrowedFromAndFollowed(t *testing.T) {
	o, _ := history(t)
	dir := filepath.Join(t.TempDir(), "mirror")
	for range 2 {
		id := o.commit("next", map[string]string{"n.txt": strings.Repeat("x", 1<<20)})
		o.git("branch", "-f", "moving")
		m := openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: o.dir})
		got, err := m.Resolve(t.Context(), []string{"moving", "HEAD"})
		if err != nil || got["moving"].Commit != id || got["HEAD"].Commit != id {
			t.Fatalf("%v, %v; want %s", got, err, id)
		}
	}
	packs, _ := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
	for _, p := range packs {
		if filepath.Base(p) != "alternates" {
			t.Errorf("the mirror holds %s of its own", p)
		}
	}
}

func TestABundleThatWasWrittenAnewIsFollowed(t *testing.T) {
	o, _ := history(t)
	dir, file := filepath.Join(t.TempDir(), "mirror"), filepath.Join(t.TempDir(), "history.bundle")
	for range 2 {
		id := o.commit("next", map[string]string{"n.txt": "next\n"})
		o.git("tag", "-f", "moving")
		o.git("bundle", "create", "-q", file, "--all")
		for _, offline := range []bool{false, true} {
			m := openWith(t, Options{Exec: &realExec{}, Dir: dir, Location: file, Offline: offline})
			got, err := m.Resolve(t.Context(), []string{"moving"})
			if err != nil || got["moving"].Commit != id {
				t.Fatalf("offline %v: %v, %v; want %s", offline, got, err, id)
			}
		}
	}
}

func TestUnknownRevisionsSayWhatIsNear(t *testing.T) {
	o, ids := history(t)
	o.git("tag", "tree", "main^{tree}")
	for name, location := range map[string]string{"path": o.dir, "URL": "file://" + o.dir} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, location)
			found, err := m.Resolve(t.Context(), []string{"main", "v1.1", "feature/fastpath", "main~9", "deadbeef",
				"--upload-pack=touch /tmp/x", "a\nb", "main:a.txt", "a..b", "main@{1}", "", "tree"})
			if found["main"].Commit != ids["merge"] {
				t.Errorf("main: %v", found)
			}
			for _, want := range []string{
				`revision "v1.1" is not in ` + location + `; did you mean "v1.0"?`,
				`revision "feature/fastpath" is not in ` + location + `; did you mean "feature/fast-path"?`,
				`revision "main~9" leads nowhere: main is commit ` + ids["merge"][:12] + `, which has no ~9 in ` +
					location,
				`revision "deadbeef" is not in ` + location, `revision "tree" leads to no commit in ` + location,
				`revision "--upload-pack=touch /tmp/x" is not the spelling of a revision of ` + location,
				`revision "a\nb" is not the spelling`, `revision "main:a.txt" is not the`, `revision "a..b" is not the`,
				`revision "main@{1}" is not the`, `revision "" is not the`,
			} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %s", err, want)
				}
			}
			if _, ok := errors.AsType[*UnknownRev](err); !ok {
				t.Errorf("%T", err)
			}
		})
	}
}

func TestAnAmbiguousHashNamesTheCommitsItMayMean(t *testing.T) {
	o := newOrigin(t)
	byPrefix := map[string][]string{}
	var prefix string
	// Some pair among a few hundred commits shares four digits, with these dates always the same pair.
	for i := 0; prefix == "" && i < 3000; i++ {
		tree := o.git("write-tree")
		id := o.git("commit-tree", tree, "-m", strings.Repeat("x", i))
		byPrefix[id[:4]] = append(byPrefix[id[:4]], id)
		if len(byPrefix[id[:4]]) == 2 {
			prefix = id[:4]
		}
	}
	pair := byPrefix[prefix]
	o.git("branch", "a-branch", pair[0])
	o.git("branch", "b-branch", pair[1])
	m, _ := open(t, o.dir)
	_, err := m.Resolve(t.Context(), []string{prefix})
	u, ok := errors.AsType[*UnknownRev](err)
	slices.Sort(pair)
	if !ok || !u.Ambiguous || !slices.Equal(u.Near, pair) {
		t.Errorf("%v (%+v), want %v", err, u, pair)
	}
}

func TestACommitThatNoBranchLeadsToIsFetchedByItsHash(t *testing.T) {
	o, _ := history(t)
	tree := o.git("rev-parse", "main^{tree}")
	lonely := o.git("commit-tree", tree, "-p", "main", "-m", "of a pull request")
	o.git("update-ref", "refs/pull/7/head", lonely)
	o.git("config", "uploadpack.allowReachableSHA1InWant", "true")
	m, _ := open(t, "file://"+o.dir)
	got, err := m.Resolve(t.Context(), []string{lonely, lonely + "^", "refs/pull/7/head"})
	if err != nil || got[lonely].Commit != lonely || got["refs/pull/7/head"].Commit != lonely {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLocationsThatAreNoRepository(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file.bundle")
	if err := os.WriteFile(file, []byte("this is not a bundle, whatever its name"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--object-format=sha256", other).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for location, want := range map[string]string{
		"":                            "no location",
		"-oProxyCommand=x":            "begins with a dash",
		"ext::sh -c true":             "there is nothing at this path",
		"ftp://host/x":                `transport "ftp"`,
		filepath.Join(dir, "missing"): "there is nothing at this path",
		dir:                           "not a git repository",
		other:                         "its commits are named by SHA-256",
		file:                          "not a git bundle",
	} {
		_, err := Open(t.Context(), Options{Exec: &realExec{}, Dir: filepath.Join(t.TempDir(), "m"), Location: location,
			Env: os.Environ()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", location, err, want)
		}
	}
}
