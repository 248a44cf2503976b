package stream

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/docker/docker/pkg/stdcopy"
)

// kept is what an engine answers: a piece for each record. One that forgets keeps no newline after a line that was in
// pieces, as Docker 20.10.
func kept(t *testing.T, stdout []byte, forgets bool) *Log {
	t.Helper()
	var answer bytes.Buffer
	w := stdcopy.NewStdWriter(&answer, stdcopy.Stdout)
	for line := range bytes.Lines(stdout) {
		long := len(line) > 7
		for ; len(line) > 7; line = line[7:] {
			_, _ = w.Write(line[:7])
		}
		if long && forgets {
			line = bytes.TrimSuffix(line, newline)
		}
		_, _ = w.Write(line)
	}
	l, err := ReadLog(&answer)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whatever was printed, and wherever the stream was cut, all is there afterwards.
func TestALogCompletesAStream(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		printed := make([]byte, random.IntN(40))
		for i := range printed {
			printed[i] = "ab\n"[random.IntN(3)]
		}
		var got bytes.Buffer
		stdout, stderr := &Counted{Writer: &got}, &Counted{Writer: io.Discard}
		cut := random.IntN(len(printed) + 1)
		for rest := printed[:cut]; len(rest) > 0; {
			n, _ := stdout.Write(rest[:1+random.IntN(len(rest))])
			rest = rest[n:]
		}
		forgets := random.IntN(2) == 0
		if !kept(t, printed, forgets).Complete(stdout, stderr) {
			t.Fatalf("%q is not the beginning of %q", printed[:cut], printed)
		}
		want, result := string(printed), got.String()
		if forgets {
			want, result = strings.ReplaceAll(want, "\n", ""), strings.ReplaceAll(result, "\n", "")
		}
		if result != want {
			t.Fatalf("%q of %q became %q", printed[:cut], printed, &got)
		}
	}
}

// A log that may lack its beginning tells that something is lost.
func TestALogThatIsNotWhole(t *testing.T) {
	line := []byte("0123456789012345678901234567890123456789\n")
	log := bytes.Repeat(line, 10_000)
	other := append(bytes.Repeat(line, 10_000), "end\n"...)
	for _, tt := range []struct {
		came, log []byte
		want      bool
	}{
		{log, log, true},
		{other, other, true},
		{append(bytes.Repeat(line, 5), log...), log, true},
		{log[:len(log)-1], log, true}, // its last newline
		{log[:len(log)-2], log, false},
		{log, other, false},
		{append(bytes.Repeat(line, 5), log...), other, false},
		{other, log, false}, // the disk of the engine was full
		{nil, log, false},
		{log, nil, true},
	} {
		var got bytes.Buffer
		stdout, stderr := &Counted{Writer: &got}, &Counted{Writer: io.Discard}
		_, _ = stdout.Write(tt.came)
		if known := kept(t, tt.log, false).Complete(stdout, stderr); known != tt.want || got.Len() != len(tt.came) {
			t.Errorf("%d bytes with a log of %d: %v, %d bytes", len(tt.came), len(tt.log), known, got.Len())
		}
	}
}
