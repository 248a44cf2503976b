package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// rollEvery is how often a roll is brought up to date.
const rollEvery = time.Second

// roll is a file that says which programs of this process run, for the Reap that comes after a kill: what hides its
// environment, and whose ancestors are gone, is then known by its session, or as an orphan that this process had
// adopted.
//
// Its first line is when it was last up to date, in clock ticks since boot. Each further line is + or -, the number of
// a process, and its start. It is not synced: processes do not outlive the machine.
type roll struct {
	path string

	mu     sync.Mutex
	file   *os.File
	end    int64
	listed map[procID]bool
	stop   chan struct{}
}

// rollOf is the roll of a process in a directory.
func rollOf(dir string, m mark) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%d.%d", m.namespace, m.pid, m.born))
}

// note adds a program that was started, or takes back one that ended with all its descendants.
func (h *Host) note(sign byte, id procID) {
	h.roll.mu.Lock()
	defer h.roll.mu.Unlock()
	h.roll.write(sign, id)
}

// openRoll opens the roll before the first program is started, so that as little as possible lies between a start and
// its line. A roll that cannot be written is none: what is lost is what Reap could not find without it.
func (h *Host) openRoll() {
	r := &h.roll
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.rolls == "" || r.stop != nil {
		return
	}
	r.path, r.listed, r.stop = rollOf(h.rolls, h.mark), map[procID]bool{}, make(chan struct{})
	if os.MkdirAll(h.rolls, 0o755) != nil {
		return
	}
	var err error
	if r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
		return
	}
	r.tick()
	go r.keep(h.orphans.foreign, r.stop)
}

func (r *roll) write(sign byte, id procID) {
	if r.file == nil || r.listed[id] == (sign == '+') {
		return
	}
	if r.listed[id] = sign == '+'; sign == '-' {
		delete(r.listed, id)
	}
	n, _ := r.file.WriteAt(fmt.Appendf(nil, "%c %d %d\n", sign, id.pid, id.born), r.end)
	r.end += int64(n)
}

// tick writes the first line.
func (r *roll) tick() {
	n, _ := r.file.WriteAt(fmt.Appendf(nil, "%20d\n", bootTicks()), 0)
	r.end = max(r.end, int64(n))
}

// keep brings the roll up to date from time to time: nobody tells this process that it was given an orphan.
func (r *roll) keep(foreign map[int]bool, stop <-chan struct{}) {
	ticker := time.NewTicker(rollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		if r.file != nil {
			r.update(foreign)
		}
		r.mu.Unlock()
	}
}

// update lists the children that there are, and takes off the roll those that are gone: their numbers are used again.
func (r *roll) update(foreign map[int]bool) {
	defer r.tick()
	children, ok := childrenOf(foreign)
	if !ok {
		return
	}
	for id := range r.listed {
		if !children[id] {
			r.write('-', id)
		}
	}
	for id := range children {
		r.write('+', id)
	}
}

// Close ends what the Host keeps for a later Reap. Its processes must have ended.
func (h *Host) Close() error {
	r := &h.roll
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		close(r.stop)
		r.stop = nil
	}
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.file.Close(), os.Remove(r.path))
	r.file = nil
	return err
}

// childrenOf returns this process's children, but for those of foreign sessions. They are not known where the kernel
// was built without CONFIG_PROC_CHILDREN, nor to the first process of a container, which is given the orphans of
// strangers.
func childrenOf(foreign map[int]bool) (ids map[procID]bool, known bool) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // of each thread
	if os.Getpid() == 1 || len(lists) == 0 {
		return nil, false
	}
	ids = map[procID]bool{}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscanf(field, "%d", &pid); err != nil {
				continue
			}
			if p, err := readProc(pid); err == nil && !foreign[p.session] && !isApart(p.session) {
				ids[p.id()] = true
			}
		}
	}
	return ids, true
}

// bootTicks is now on the clock by which the starts of processes are told.
func bootTicks() uint64 {
	const perSecond = 100 // USER_HZ, which is the same on all machines that Go runs on
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano()) / uint64(time.Second/perSecond)
}

// abandonedRoll is what the roll of a dead process listed last.
type abandonedRoll struct {
	path    string
	last    uint64 // when it was up to date
	running map[procID]bool
}

// readRolls reads the rolls in dir of processes that are not living.
func readRolls(dir, namespace string, living map[procID]bool) []abandonedRoll {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var rolls []abandonedRoll
	for _, file := range files {
		var starter procID
		rest, ok := strings.CutPrefix(file.Name(), namespace+".")
		if _, err := fmt.Sscanf(rest, "%d.%d", &starter.pid, &starter.born); !ok || err != nil || living[starter] ||
			!file.Type().IsRegular() {
			continue
		}
		roll := abandonedRoll{path: filepath.Join(dir, file.Name()), running: map[procID]bool{}}
		text, err := os.ReadFile(roll.path)
		if err != nil {
			continue
		}
		head, lines, _ := strings.Cut(string(text), "\n")
		if _, err := fmt.Sscanf(head, "%d", &roll.last); err == nil {
			for line := range strings.Lines(lines) {
				var sign string
				var id procID
				// else torn
				if _, err := fmt.Sscanf(line, "%1s %d %d\n", &sign, &id.pid, &id.born); err == nil &&
					strings.HasSuffix(line, "\n") {
					roll.running[id] = sign == "+"
				}
			}
		}
		rolls = append(rolls, roll)
	}
	return rolls
}

// holds says whether p was listed, or is of the session of a program that was listed. The number of a session is not
// used again while anything of it lives, so what was born while the roll was kept, and has that number, is of that
// session.
func (r *abandonedRoll) holds(p proc) bool {
	if r.running[p.id()] {
		return true
	}
	const late = 200 // ticks that may have passed between the last line and the end of who wrote it
	if p.born > r.last+late {
		return false
	}
	for id, running := range r.running {
		if running && p.session == id.pid && p.born >= id.born {
			return true
		}
	}
	return false
}

// removeRolls removes the rolls whose programs have been ended.
func removeRolls(rolls []abandonedRoll) {
	for _, r := range rolls {
		_ = os.Remove(r.path) // a later Reap finds nothing by it
	}
}
