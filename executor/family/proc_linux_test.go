package family

import (
	"os"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestProcStatOfThisProcess(t *testing.T) {
	p, err := readProc(os.Getpid())
	if err != nil || p.pid != os.Getpid() || p.parent != os.Getppid() || p.born == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestParseStatOfAHostileName(t *testing.T) {
	p, err := parseStat("42 (a) R 1 (b) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 6 7 8\n")
	if err != nil || p.name != "a) R 1 (b" || p.pid != 42 || p.parent != 7 || p.group != 8 || p.session != 9 ||
		p.born != 12345 || p.state != 'S' {
		t.Errorf("%+v, %v", p, err)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (sh) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 6 7 8\n")
	f.Add(") (")
	f.Add("1 () R")
	f.Fuzz(func(t *testing.T, line string) {
		fuzzing.Frugal(t, len(line), func() { _, _ = parseStat(line) })
	})
}

func FuzzParseMark(f *testing.F) {
	f.Add(NewMark("/some/where").Next().String())
	f.Add("....")
	f.Add("0123456789abcdef.4026531836.1.2.x")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzing.Frugal(t, len(text), func() {
			m, ok := parseMark(text)
			if again, ok2 := parseMark(m.String()); ok && (!ok2 || again != m) {
				t.Errorf("%q reads as %+v, and that as %+v", text, m, again)
			}
		})
	})
}
