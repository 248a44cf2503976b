package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatARollHolds asks a roll of a killed process about others: numbers are used again, and a stranger must not be
// ended because his process has one that was on the roll.
func TestWhatARollHolds(t *testing.T) {
	dir := t.TempDir()
	const now = 5000 // ticks, when the roll was last up to date
	write := func(starter, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, starter), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("ns.10.900", fmt.Sprintf("%20d\n+ 100 1000\n+ 200 1100\n- 100 1000\n+ 300 12", now)) // the last line is torn
	write("ns.11.900", fmt.Sprintf("%20d\n+ 400 1000\n", now))                                 // lives
	write("other.12.900", fmt.Sprintf("%20d\n+ 500 1000\n", now))                              // of another namespace
	write("ns.13.900", "")                                                                     // killed as it began
	rolls := readRolls(dir, "ns", map[procID]bool{{11, 900}: true})
	if len(rolls) != 2 {
		t.Fatalf("rolls are %+v", rolls)
	}
	for _, test := range []struct {
		what string
		p    proc
		want bool
	}{
		{"a program that ran", proc{pid: 200, session: 200, born: 1100}, true},
		{"its child that hides", proc{pid: 201, session: 200, born: 1200}, true},
		{"its child that was born as the roll's owner was killed", proc{pid: 202, session: 200, born: now + 1}, true},
		{"one that had ended", proc{pid: 100, session: 100, born: 1000}, false},
		{"a stranger with the number of one that had ended", proc{pid: 100, session: 100, born: 3000}, false},
		{"a stranger with the number of one that ran, later", proc{pid: 200, session: 200, born: now + 1000}, false},
		{"a stranger in a session that is older", proc{pid: 203, session: 200, born: 1000}, false},
		{"one of the torn line's", proc{pid: 301, session: 300, born: 1300}, false},
		{"a program of who lives", proc{pid: 400, session: 400, born: 1000}, false},
		{"a program of another namespace", proc{pid: 500, session: 500, born: 1000}, false},
	} {
		held := false
		for _, r := range rolls {
			held = held || r.holds(test.p)
		}
		if held != test.want {
			t.Errorf("%s: %v", test.what, held)
		}
	}
}

// TestARollForgets takes off the roll what is gone, and keeps what is there.
func TestARollForgets(t *testing.T) {
	h := NewHost(HostOptions{Owner: t.Name(), Rolls: t.TempDir()})
	h.openRoll()
	path := h.roll.path
	gone := procID{1 << 30, 77}
	h.note('+', gone)
	h.roll.mu.Lock()
	h.roll.update(h.orphans.foreign)
	h.roll.mu.Unlock()
	if _, ok := childrenOf(h.orphans.foreign); !ok {
		t.Skip("the kernel does not tell the children of a process")
	}
	rolls := readRolls(h.rolls, h.mark.namespace, nil)
	if len(rolls) != 1 || rolls[0].running[gone] || rolls[0].last == 0 {
		t.Errorf("rolls are %+v", rolls)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a closed host leaves its roll behind")
	}
}
