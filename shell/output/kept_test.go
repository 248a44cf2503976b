package output

import (
	"io"
	"os"
	"strings"
	"testing"
)

// Output is written to the log and to a file; without output there is no file.
func TestOutputIsKept(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	k := NewKept(&log, dir)
	if k.LastLine() != "" {
		t.Error("a command that printed nothing has a last line")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := io.WriteString(k, "first\nlast\n\n"); err != nil {
		t.Fatal(err)
	}
	k.Close()
	if log.String() != "first\nlast\n\n" || k.LastLine() != "last" {
		t.Errorf("%q, last %q", log.String(), k.LastLine())
	}
}
