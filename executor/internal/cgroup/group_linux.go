package cgroup

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Root is where this process makes groups.
type Root struct {
	dir         string   // the group in which it makes one of its own
	controllers []string // that groups below have, of Controllers
	leave       bool     // this process has to leave dir before

	mu   sync.Mutex
	own  *os.File // the group of this process, which is locked as long as that has groups in it
	used int      // how many
}

// Has reports whether groups have a controller.
func (r *Root) Has(controller string) bool { return slices.Contains(r.controllers, controller) }

// Limits are what a group may use. What the controllers of the group do not bound has no bound.
type Limits struct {
	Memory    int64  // bytes, swap included; 0: no limit
	Processes int    // and threads; 0: no limit
	Cores     string // such as "0-3,8"; empty: all
	CPUs      int    // how many cores' worth of time, where Cores is not bounded; 0: no limit
}

// prefix begins the names of the groups of processes. Whoever holds the lock of one lives.
const prefix = "benchgraph-"

// New makes a group. Close it after use.
func (r *Root) New(l Limits) (*Group, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil {
		if err := r.open(); err != nil {
			return nil, fmt.Errorf("control group: %w", err)
		}
	}
	dir := filepath.Join(r.own.Name(), "command-"+strings.ToLower(rand.Text()[:12]))
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = r.set(dir, l)
	}
	g := &Group{root: r, dir: dir}
	if err == nil {
		g.file, err = os.Open(dir)
	}
	if err != nil {
		_ = os.Remove(dir) // it holds no process
		if r.used == 0 {
			r.close()
		}
		return nil, fmt.Errorf("control group: %w", err)
	}
	r.used++
	return g, nil
}

func (r *Root) set(dir string, l Limits) error {
	settings := [][2]string{}
	if r.Has("memory") && l.Memory > 0 {
		limit := strconv.FormatInt(l.Memory, 10)
		settings = append(settings, [][2]string{{"memory.max", limit}, {"memory.swap.max", "0"},
			{"memory.oom.group", "1"}}...)
	}
	if r.Has("pids") && l.Processes > 0 {
		settings = append(settings, [2]string{"pids.max", strconv.Itoa(l.Processes)})
	}
	switch {
	case r.Has("cpuset") && l.Cores != "":
		settings = append(settings, [2]string{"cpuset.cpus", l.Cores})
	case r.Has("cpu") && l.CPUs > 0:
		const period = 100_000 // microseconds
		settings = append(settings, [2]string{"cpu.max", fmt.Sprint(l.CPUs*period, " ", period)})
	}
	for _, s := range settings {
		err := write(dir, s[0], s[1])
		if errors.Is(err, os.ErrNotExist) && s[0] == "memory.swap.max" { // a kernel that does not account for swap
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open makes the group of this process, and removes those of processes that were killed, with all that runs in them.
func (r *Root) open() error {
	if err := r.removeStale(); err != nil {
		return err
	}
	if r.leave {
		if err := r.moveOut(); err != nil {
			return err
		}
	}
	for _, c := range r.controllers {
		if err := write(r.dir, "cgroup.subtree_control", "+"+c); err != nil {
			return err
		}
	}
	dir := filepath.Join(r.dir, prefix+strings.ToLower(rand.Text()[:12]))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	own, err := os.Open(dir)
	if err == nil {
		err = fs.TryLock(own, fs.Exclusive)
	}
	for _, c := range r.controllers {
		err = cmp.Or(err, write(dir, "cgroup.subtree_control", "+"+c))
	}
	if err != nil {
		own.Close()
		return errors.Join(err, os.Remove(dir))
	}
	r.own = own
	return nil
}

// moveOut moves this process from dir to a group in it, where it stays.
func (r *Root) moveOut() error {
	leaf := filepath.Join(r.dir, "self-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	r.leave = false
	return write(leaf, "cgroup.procs", strconv.Itoa(os.Getpid()))
}

// close removes the group of this process.
func (r *Root) close() {
	_ = os.Remove(r.own.Name()) // one that stays is removed by the next process
	r.own.Close()
	r.own = nil
}

func (r *Root) removeStale() error {
	all, err := filepath.Glob(filepath.Join(r.dir, prefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range all {
		f, err := os.Open(dir)
		if err != nil {
			continue // it was just removed
		}
		if fs.TryLock(f, fs.Exclusive) == nil {
			err = remove(dir)
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// Group is a group of one command.
type Group struct {
	root *Root
	dir  string
	file *os.File
}

// FD returns a descriptor of the group, to start processes in.
func (g *Group) FD() int { return int(g.file.Fd()) }

// OutOfMemory reports whether the kernel has ended processes of the group because memory had run out.
func (g *Group) OutOfMemory() bool {
	text, _ := os.ReadFile(filepath.Join(g.dir, "memory.events")) // without the controller, there is none
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// Close ends all that is left in the group, and removes it.
func (g *Group) Close() error {
	err := errors.Join(g.file.Close(), remove(g.dir))
	g.root.mu.Lock()
	defer g.root.mu.Unlock()
	if g.root.used--; g.root.used == 0 {
		g.root.close()
	}
	return err
}

// killTime bounds the wait for processes that were killed.
const killTime = 10 * time.Second

// remove kills all in a group and in those below, and removes them.
func remove(dir string) error {
	if err := kill(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	// A process that has ended is in the group for a moment.
	for end := time.Now().Add(killTime); ; time.Sleep(time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("control group: %w", err)
		}
	}
}

func kill(dir string) error {
	err := write(dir, "cgroup.kill", "1")
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for range 100 { // before Linux 5.14: what is started meanwhile is found by the next look
		procs, err := processes(dir)
		if err != nil || len(procs) == 0 {
			return nil // nor is there a group
		}
		for _, pid := range procs {
			_ = syscall.Kill(pid, unix.SIGKILL) // it may have ended
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func processes(dir string) (pids []int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// write writes a setting of a group.
func write(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
