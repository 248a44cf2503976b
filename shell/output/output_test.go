package output

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Only the output of the member's commands is read.
func TestOutputsOfALog(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	log := "before\n$ sh -euc echo no\n> echo nor this\nyes\n> quoted\n" + long +
		"\n== block 1: a ==\nof a\n$ no\n== block 1: b ==\nof b\n== block 2: a ==\nagain a"
	for member, want := range map[string]string{
		"": "before\nyes\n> quoted\n" + long +
			"\n== block 1: a ==\nof a\n== block 1: b ==\nof b\n== block 2: a ==\nagain a",
		"a": "of a\nagain a",
		"b": "of b\n",
		"c": "",
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(log),
			"bytes": iotest.OneByteReader(strings.NewReader(log))} {
			got, err := io.ReadAll(NewReader(r, member))
			if err != nil || string(got) != want {
				t.Errorf("%s %q: %d bytes, %v; want %d", name, member, len(got), err, len(want))
			}
		}
	}
}
