package revision

import (
	"context"
	"testing"
)

// listed are the directories of a tree.
type listed map[string][]Entry

func (l listed) Dirs(_ context.Context, at []Place) (map[Place][]Entry, error) {
	found := map[Place][]Entry{}
	for _, p := range at {
		if entries, there := l[p.Path]; there {
			found[p] = entries
		}
	}
	return found, nil
}

func (listed) Files(context.Context, string, []string) (map[string][]byte, error) { return nil, nil }

func TestNothingIsSaidOfWhatLiesBehindALink(t *testing.T) {
	f := New(listed{
		"":      {{Name: "bench", Link: true, ID: "1"}, {Name: "tools", Dir: true, ID: "2"}},
		"tools": {{Name: "run.py", ID: "3"}, {Name: "link.py", Link: true, ID: "4"}},
	}, func(string) string { return "" })
	for path, want := range map[string]State{
		"bench": Unknown, "bench/run.py": Unknown, "bench/deep/run.py": Unknown, "tools/link.py": Unknown,
		"tools": IsDir, "tools/run.py": IsFile, "tools/gone.py": Absent, "tools/gone/run.py": Absent, "gone": Absent,
	} {
		tree := Tree{Repo: "r", Rev: "c"}
		got, _ := f.Stat(tree, path)
		for more := true; more; got, _ = f.Stat(tree, path) {
			var err error
			if more, err = f.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
