package fs_test

import (
	"testing"

	"github.com/benchgraph/benchgraph/internal/fs"
)

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/a/b/../c", "/a", true}, {"/ab", "/a", false},
		{"/", "/a", false}, {"/a/../b", "/a", false}, {"a/b", "a", true}, {"a", "/a", false}, {"/a/..b", "/a", true},
	} {
		if got := fs.Below(c.path, c.dir); got != c.want {
			t.Errorf("Below(%q, %q) = %v", c.path, c.dir, got)
		}
	}
}
