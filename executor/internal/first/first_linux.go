package first

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/benchgraph/benchgraph/executor/internal/first/linux"
)

// The first process must be ready within a millisecond or two, and initializing the other packages takes longer. So
// this is the only init function of the module. An init function runs on the main thread: privileges that this thread
// drops are gone for the program that it starts.
func init() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case Name:
		os.Exit(first())
	case JoinName:
		os.Exit(join())
	case FenceName:
		os.Exit(fence())
	}
}

// process is the state of a running first process.
type process struct {
	spec    Spec
	files   []int         // the program's streams and, if it has one, its control group
	program int           // process number of the program
	stop    chan struct{} // closed when everything must end
	over    chan struct{} // closed when the program has ended

	mu   sync.Mutex
	sent map[int]bool // processes that got the current signal
	left map[int]bool // processes that got a signal after the program had ended
}

// first is the main function of the first process. When it returns, everything in its namespaces ends.
func first() int {
	p := &process{stop: make(chan struct{}), over: make(chan struct{}), sent: map[int]bool{}, left: map[int]bool{}}
	unhandled()
	// benchgraph may have inherited open files, and an open directory would lead out of the sandbox.
	if err := linux.CloseRange(controlFD, math.MaxUint32, linux.CLOSE_RANGE_CLOEXEC); err != nil {
		return p.fail("close files", err)
	}
	warm()
	switch begun, err := p.receive(); {
	case err != nil:
		return p.fail("read what is to be done", err)
	case !begun:
		return 0
	}
	steps := []func() (step string, err error){p.spec.setUp, giveUp, withoutKeys}
	if f := p.spec.Fence; f != nil {
		steps = append(steps, f.enclose)
	}
	for _, do := range steps {
		if step, err := do(); err != nil {
			return p.fail(step, err)
		}
	}
	if p.spec.Trial {
		return send(Message{Started: true})
	}
	spareThreads()
	if err := p.start(); err != nil {
		return p.fail("", err)
	}
	send(Message{Started: true})
	go p.listen()
	go p.finish()
	p.reap()
	return 0
}

// unhandled resets the signal handlers of Go's runtime: the kernel delivers to a first process only signals that it
// handles. os/signal would need a millisecond or more for that, as it changes threads for each signal.
func unhandled() {
	var standard [8]uint64 // SIG_DFL without flags; no system has a larger sigaction
	for s := uintptr(1); s <= 64; s++ {
		if syscall.Signal(s) != syscall.SIGURG { // the runtime sends it to itself; ignored by default
			// SIGKILL cannot be set
			_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&standard)), 0, 8, 0, 0)
		}
	}
}

// spareThreads makes the threads that Go's runtime will need. If a program uses up all process numbers, no thread can
// be made any more, and the runtime aborts a process that cannot make one.
func spareThreads() {
	var made sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		made.Add(1)
		go func() {
			runtime.LockOSThread() // forces one thread for each goroutine
			made.Done()
			<-done
			runtime.UnlockOSThread() // keeps the thread
		}()
	}
	made.Wait()
	close(done)
}

// giveUp drops all privileges of this thread, and so of the program, for good. No process inside can then inspect
// this process.
func giveUp() (step string, err error) {
	for c := uintptr(0); c <= linux.CAP_LAST_CAP; c++ {
		// EINVAL: the kernel does not know this capability
		if err := linux.Prctl(syscall.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != syscall.EINVAL {
			return "drop capabilities", err
		}
	}
	// root has no special rights, setuid gives none, nothing is ambient; each locked
	const locked = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<6 | 1<<7
	if err := linux.Prctl(syscall.PR_SET_SECUREBITS, locked, 0, 0, 0); err != nil {
		return "lock capabilities", err
	}
	var none [2]linux.CapUserData
	if err := linux.Capset(&linux.CapUserHeader{Version: linux.LINUX_CAPABILITY_VERSION_3}, &none); err != nil {
		return "drop capabilities", err
	}
	if err := linux.Prctl(linux.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "forbid new privileges", err
	}
	if err := linux.Prctl(syscall.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return "hide the first process", err
	}
	return "", nil
}

func (p *process) start() error {
	path, err := p.spec.program()
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{Dir: p.spec.Dir, Env: p.spec.Env, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, fd := range p.files[:3] {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	if len(p.files) > 3 {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, p.files[3]
	}
	p.program, err = syscall.ForkExec(path, p.spec.Argv, attr)
	for _, fd := range p.files {
		syscall.Close(fd) // the output must end with the program
	}
	return err
}

// program looks up the program as a shell does.
func (s *Spec) program() (string, error) {
	if s.Path != "" {
		return s.Path, nil
	}
	found := error(syscall.ENOENT)
	for _, v := range s.Env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(list, ":") {
			if !strings.HasPrefix(dir, "/") {
				dir = s.Dir + "/" + dir
			}
			path := dir + "/" + s.Argv[0]
			info, err := os.Stat(path)
			switch {
			case err != nil || info.IsDir():
			case info.Mode()&0o111 == 0:
				found = syscall.EACCES
			default:
				return path, nil
			}
		}
	}
	return "", found
}

// reap reads the status of every process that ends, as all orphans become children of this process, until no process
// is left.
func (p *process) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			p.leave(err == syscall.ECHILD)
		case pid == p.program:
			e := Ended{Code: status.ExitStatus()}
			if status.Signaled() {
				e.Code, e.Signal = -1, int(status.Signal())
			}
			send(Message{Ended: &e})
			close(p.over)
			p.program = -1 // another process may get its number
		}
	}
}

// leave sends Gone and ends this process, and with it all others. If Gone says Alone, the other side need not wait
// until the kernel has removed the namespaces, which takes milliseconds. With much in memory the removal takes longer
// and would slow down whatever runs meanwhile, so Alone is then false.
func (p *process) leave(alone bool) {
	p.mu.Lock()
	os.Exit(send(Message{Gone: &Gone{alone && !p.holdsMuch(), len(p.left)}}))
}

// The kernel removes this many bytes and files in memory in about a millisecond.
const fewBytes, fewFiles = 1 << 20, 256

// holdsMuch reports whether the program's file systems in memory hold much.
func (p *process) holdsMuch() bool {
	dirs := []string{"/dev/shm"}
	for _, b := range p.spec.Binds {
		if b.From == "" {
			dirs = append(dirs, b.To)
		}
	}
	for _, dir := range dirs {
		var f syscall.Statfs_t
		err := syscall.Statfs(dir, &f)
		if err != nil || (f.Blocks-f.Bfree)*uint64(f.Bsize) > fewBytes || f.Files-f.Ffree > fewFiles {
			return true
		}
	}
	return false
}

// finish ends the remaining processes after the program has ended, or all processes on a Stop: SIGTERM first, then
// SIGKILL.
func (p *process) finish() {
	select {
	case <-p.stop:
	case <-p.over:
		select {
		case <-p.stop:
		case <-time.After(p.spec.Settle):
		}
	}
	p.signal(syscall.SIGTERM, p.spec.Grace)
	p.signal(syscall.SIGKILL, time.Second)
	p.leave(false) // nothing survives this
}

// signal sends a signal to each process once, also to processes that appear later, until the limit has passed. If no
// process is left earlier, reap ends this process meanwhile.
func (p *process) signal(sig syscall.Signal, limit time.Duration) {
	deadline := time.Now().Add(limit)
	clear(p.sent)
	for pause := time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, 50*time.Millisecond) {
		together, over := len(p.sent) == 0, false
		select {
		case <-p.over:
			over = true
		default:
		}
		p.mu.Lock()
		for _, pid := range living() {
			if !p.sent[pid] {
				p.sent[pid] = true
				if over {
					p.left[pid] = true
				}
				if !together {
					_ = syscall.Kill(pid, sig) // it may have ended
				}
			}
		}
		p.mu.Unlock()
		if together { // one call for all, so that a shell does not see its commands end before itself
			_ = syscall.Kill(-1, sig)
		}
		time.Sleep(pause)
	}
}

// living returns the numbers of all other processes in this namespace that have not ended.
func living() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 1 {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if at := strings.LastIndexByte(string(stat), ')'); err == nil && at >= 0 && at+2 < len(stat) &&
			stat[at+2] != 'Z' && stat[at+2] != 'X' {
			pids = append(pids, pid)
		}
	}
	return pids
}
