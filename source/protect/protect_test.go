package protect

import "testing"

func TestFilesBehindLinksAreProtected(t *testing.T) {
	links := map[string]string{
		"bench":         "tools/v2",       // below which are what measures
		"tools/v2":      "v1",             // through another one
		"perf/run.sh":   "../lib/run.sh",  // to a file
		"perf/lib":      "../lib/gone",    // to nothing
		"src/loop/loop": "../../src/loop", // without an end
		"latest":        "docs",
	}
	files := []string{"tools/v1/run.sh", "tools/v1/data/a", "lib/run.sh", "lib/other.sh", "docs/run.sh", "src/loop/a.c"}
	for _, c := range []struct {
		pattern string
		holds   []string
		not     []string
	}{
		{"bench/*.sh", []string{"bench", "tools/v2", "tools/v1/run.sh", "tools/v1/new.sh", "bench/new.sh"},
			[]string{"tools/v1/data/a", "docs/run.sh", "latest", "lib/run.sh"}},
		{"perf/**", []string{"perf/run.sh", "lib/run.sh", "lib/gone", "perf"}, []string{"lib/other.sh", "bench"}},
		{"src/loop/loop/a.c", []string{"src/loop/a.c", "src/loop/loop"}, []string{"src/loop/b.c"}},
		{"./lib/*.sh", []string{"lib/run.sh", "lib/new.sh"}, []string{"docs/run.sh"}},
		{"**/conftest.py", []string{"conftest.py", "docs/conftest.py"}, []string{"latest", "bench", "docs/run.sh"}},
	} {
		g := newGuard([]string{c.pattern}, links, files)
		for _, name := range c.holds {
			if !g.Holds(name) {
				t.Errorf("%s does not protect %s", c.pattern, name)
			}
		}
		for _, name := range c.not {
			if g.Holds(name) {
				t.Errorf("%s protects %s", c.pattern, name)
			}
		}
	}
}

func TestFilesInThePlaceOfProtectedPythonFilesAreProtected(t *testing.T) {
	g := newGuard([]string{"bench/*.py"}, nil, []string{"bench/run.py", "bench/pkg/run.py", "lib/run.py"})
	for name, by := range map[string]string{
		"bench/run/__init__.py":                         "bench/run.py",
		"bench/run.so":                                  "bench/run.py",
		"bench/run.cpython-311-x86_64-linux-gnu.so":     "bench/run.py",
		"bench/__pycache__/run.cpython-311.opt-1.pyc":   "bench/run.py",
		"bench/new/__init__.py":                         "",
		"bench/pkg/run.so":                              "",
		"lib/run.so":                                    "",
		"lib/__pycache__/run.cpython-311.pyc":           "",
		"__init__.py":                                   "",
		"bench/run/other.py":                            "",
		"bench/run.cpython-311-x86_64-linux-gnu.so/c.h": "",
	} {
		if got := g.protectedName(name); got != by {
			t.Errorf("%s is protected by %q, want %q", name, got, by)
		}
	}
}
