package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fs"
)

func TestShortenKeepsBothEnds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct{ text, want string }{
		{"first\nlast\n", "first\nlast\n"},
		{"first\n" + strings.Repeat("middle\n", 100) + "last\n",
			"first\nbenchgraph: 701 bytes are left out here\nlast\n"},
		{strings.Repeat("x", 100), strings.Repeat("x", 10) + "\nbenchgraph: 80 bytes are left out here\n" +
			strings.Repeat("x", 10)},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := fs.Shorten(name, 10); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
	if err := fs.Shorten(fmt.Sprint(name, "-none"), 10); !os.IsNotExist(err) {
		t.Error(err)
	}
}
