package output

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A command that prints too much in all its streams together is ended, and so is one whose output is lost.
func TestALimitEndsACommand(t *testing.T) {
	var why []error
	end := func(err error) { why = append(why, err) }
	var stdout, stderr strings.Builder
	l := NewLimit(8, end)
	for _, w := range []io.Writer{l.Writer(&stdout), l.Writer(&stderr)} {
		if n, err := io.WriteString(w, "four"); n != 4 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if len(why) > 0 {
		t.Errorf("ended by a command that prints as much as it may: %v", why)
	}
	if n, err := io.WriteString(l.Writer(&stdout), "x"); n != 1 || err != nil {
		t.Errorf("%d bytes, %v: the command would be blocked before its end", n, err)
	}
	if len(why) != 1 || why[0] != ErrTooLong || stdout.String()+stderr.String() != "fourfour" {
		t.Errorf("%v, %q, %q", why, stdout.String(), stderr.String())
	}
	lost := NewLimit(8, end).Writer(failing{})
	if _, err := io.WriteString(lost, "x"); !errors.Is(err, iotest.ErrTimeout) || len(why) != 2 || why[1] != err {
		t.Errorf("%v; ended by %v", err, why)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }
