package lines

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestLast(t *testing.T) {
	for log, want := range map[string]string{"": "", "\n \n": "", "a\nb \x1b[0m\n\n": "b", "a\r50%": "50%"} {
		if got := Last(strings.NewReader(log)); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

func FuzzLast(f *testing.F) {
	f.Add([]byte("a\nb \x1b[0m\n\n"))
	f.Add([]byte("50%\r100%\x1b]0;title\x07\xff"))
	f.Fuzz(func(t *testing.T, log []byte) {
		var line string
		fuzzing.Frugal(t, len(log), func() { line = Last(bytes.NewReader(log)) })
		if len(line) > MaxEvidence || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("%q", line)
		}
	})
}
