package tasks

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/benchgraph/benchgraph/findings/methodology"
)

// The command line accepts the name of each sort of methodology field.
func TestAllFieldNamesAreKnown(t *testing.T) {
	known := methodology.Sorts()
	for _, name := range []string{"methodology.go", "differ.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		added := regexp.MustCompile(`(?:add|addEnv)\("(\w+)`).FindAllSubmatch(text, -1)
		if len(added) < 8 {
			t.Errorf("%s: %d fields are added", name, len(added))
		}
		for _, m := range added {
			if !slices.Contains(known, string(m[1])) {
				t.Errorf("%s: %s is no known sort of field", name, m[1])
			}
		}
	}
}
