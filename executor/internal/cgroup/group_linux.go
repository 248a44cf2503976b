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

// Root is a control group in which this process makes groups.
type Root struct {
	dir         string   // the group that holds this process's group for commands
	controllers []string // controllers of the groups below, out of Controllers
	leave       bool     // this process must first leave dir

	mu   sync.Mutex
	own  *os.File // group that holds the groups of commands; locked while it holds any
	used int      // number of groups in own
}

// Has reports whether groups have a controller.
func (r *Root) Has(controller string) bool { return slices.Contains(r.controllers, controller) }

// Limits are the limits of a group. A limit without its controller is ignored.
type Limits struct {
	Memory    int64  // bytes, swap included; 0: no limit
	Processes int    // processes and threads; 0: no limit
	Cores     string // such as "0-3,8"; empty: all
	CPUs      int    // time of so many cores, if Cores is not limited; 0: no limit
}

// prefix begins the names of the groups of benchgraph processes. A living process holds the lock of its group.
const prefix = "benchgraph-"

// New makes a group. The caller must close it.
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
		_ = os.Remove(dir) // it holds no processes
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
		if errors.Is(err, os.ErrNotExist) && s[0] == "memory.swap.max" { // the kernel does not account for swap
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open makes the group of this process. It removes groups of killed processes and kills everything that runs in them.
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

// moveOut moves this process from dir into a new group in it, for good.
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
	_ = os.Remove(r.own.Name()) // the next process removes it if this fails
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

// Group is the control group of one command.
type Group struct {
	root *Root
	dir  string
	file *os.File
}

// FD returns a file descriptor of the group, with which processes are started in it.
func (g *Group) FD() int { return int(g.file.Fd()) }

// OutOfMemory reports whether the kernel has killed processes of the group because memory had run out.
func (g *Group) OutOfMemory() bool {
	text, _ := os.ReadFile(filepath.Join(g.dir, "memory.events")) // missing without the controller
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// Close kills all processes in the group and removes it.
func (g *Group) Close() error {
	err := errors.Join(g.file.Close(), remove(g.dir))
	g.root.mu.Lock()
	defer g.root.mu.Unlock()
	if g.root.used--; g.root.used == 0 {
		g.root.close()
	}
	return err
}

// killTime limits the wait for killed processes.
const killTime = 10 * time.Second

// remove kills all processes in a group and in the groups below, and removes the groups.
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
	// An ended process stays in the group for a moment.
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
	for range 100 { // before Linux 5.14; the next read finds processes that started meanwhile
		procs, err := processes(dir)
		if err != nil || len(procs) == 0 {
			return nil // the group does not exist
		}
		for _, pid := range procs {
			_ = syscall.Kill(pid, unix.SIGKILL) // the process may have ended
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
