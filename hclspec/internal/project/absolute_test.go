package project_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// Named finds the paths that abspath made and that a command reads.
func TestNamed(t *testing.T) {
	home := filepath.Join(t.TempDir(), "my project: x")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := project.Open(home, "")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	in := d.Absolute("in.csv")
	for _, name := range []string{"lib", "/data", "/"} {
		d.Absolute(name)
	}
	for text, want := range map[string][]string{
		"cat " + in + ";":                       {in},
		"cat '" + in + "' /data/x":              {in, "/data/x"},
		"cc -I" + home + "/lib/a --in=" + in:    {home + "/lib/a", in},
		"curl file://" + in + " file:///data//": {in, "/data"},
		"echo >" + in + "; tee -a '" + in + "'": nil,
		"cat " + home + "/out.csv /etc/passwd":  nil, // abspath made neither
		"cat /mnt/data/x /database " + in + "2": nil,
		"cat ../data/x " + home + " " + home:    nil,
		"no path":                               nil,
	} {
		if got := d.Named(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
	// Paths that stand in the text as they are.
	text := "cat " + home + "/out.csv " + in + " >/tmp/x; rm /y -I/usr/include a=/b:/c//d ./e"
	if _, got := d.MadeAbsolute().Named(text); !slices.Equal(got, []string{home + "/out.csv", "/usr/include", "/b",
		"/c/d"}) {
		t.Errorf("%q", got)
	}
}
