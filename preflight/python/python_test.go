package python

import (
	"context"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

// script is the one file of a tree.
type script string

func (s script) Dirs(_ context.Context, at []revision.Place) (map[revision.Place][]revision.Entry, error) {
	found := map[revision.Place][]revision.Entry{}
	for _, p := range at {
		if p.Path == "" {
			found[p] = []revision.Entry{{Name: "s.py", ID: "s"}}
		}
	}
	return found, nil
}

func (s script) Files(context.Context, string, []string) (map[string][]byte, error) {
	return map[string][]byte{"s": []byte(s)}, nil
}

func FuzzPython(f *testing.F) {
	f.Add("class A(B):\n x: int = 1\n def m(self, p): p.add_argument(*a, **k)\n def n(self): self.m(p); add(p)\n", "-x")
	f.Add("from s import add as other\ndef add(parser):\n    parser.add_argument('--model', choices=['a', \"b\"])\n"+
		"p = FlexibleArgumentParser(description=\"\"\"x\"\"\")\nadd(p)\nother(p)\nargs = p.parse_known_args()\n",
		"--model")
	f.Fuzz(func(t *testing.T, src, name string) {
		fuzzing.Frugal(t, len(src)+len(name), func() {
			files := revision.New(script(src), func(string) string { return "" })
			r := NewReader(files)
			for range 4 {
				a := r.Parser(File{revision.Tree{Repo: "r", Rev: "c"}, "s.py"}, revision.Tree{})
				a.Match(name)
				if more, _ := files.Load(t.Context()); !more {
					break
				}
			}
		})
	})
}
