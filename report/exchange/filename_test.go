package exchange

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// Names of variants become names of files: safe, and never two alike.
func TestFileNames(t *testing.T) {
	seen := map[string]string{}
	for _, variant := range append(fuzzing.Hostile(), "human", "a/b", "a_b", "a b", "../x", strings.Repeat("y", 300),
		strings.Repeat("y", 301)) {
		name := fileName(variant)
		if other, ok := seen[name]; ok && other != variant {
			t.Errorf("%q and %q are both %q", variant, other, name)
		}
		seen[name] = variant
		if name == "" || len(name) > 120 || strings.ContainsAny(name, "/\\ :|") {
			t.Errorf("%q became %q", variant, name)
		}
	}
	if fileName("human") != "human" {
		t.Error("a plain name was changed")
	}
}
