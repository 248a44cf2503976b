package diag

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// at is a place in a file.
func at(file string, byte int) hcl.Range {
	return hcl.Range{Filename: file, Start: hcl.Pos{Byte: byte}, End: hcl.Pos{Byte: byte + 1}}
}

// A mistake of every instance of a block is reported once, with the number of instances, in the order of the files.
func TestOneMistakeMakesOneDiagnostic(t *testing.T) {
	var d Diagnostics
	for i := range 3 {
		d.Error(fmt.Sprint("key", i), at("b", 7), "Wrong type", "It is.")
	}
	d.Error("", at("a", 9), "Cycle", "There is one.")
	all := d.All([]string{"a", "b"})
	if len(all) != 2 || all[0].Summary != "Cycle" || all[1].Detail != `It is. (for each.key = "key0" and 2 more)` {
		t.Errorf("%+v", all)
	}
}

// Of very many mistakes, the first ones are reported, with the number of the others.
func TestTooManyMistakesAreCounted(t *testing.T) {
	var d Diagnostics
	for i := range maxReported + 5 {
		d.Error("", at("a", i), "Wrong type", "It is.")
	}
	all := d.All(nil)
	if !d.Full() || len(all) != maxReported+1 {
		t.Fatalf("%d are reported", len(all))
	}
	if last := all[len(all)-1]; !strings.HasPrefix(last.Detail, "5 more") {
		t.Errorf("%+v", last)
	}
}

func TestChoicesNameTheNearestOrAll(t *testing.T) {
	for given, want := range map[string]string{
		"benchmrak": ` Did you mean "benchmark"?`,
		"xyz":       " There is: benchmark, task.",
	} {
		if got := Choices(given, []string{"task", "benchmark"}); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
	if got := Choices("x", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
