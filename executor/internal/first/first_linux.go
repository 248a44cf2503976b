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

// The first process of a sandbox must be there in a millisecond or two, and the other packages of this program take
// longer than that to be set up. So this is the one init of the module. The main thread is this goroutine's, as in any
// init: what it gives up, the program that it starts does not have either.
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

// process is the first process at work.
type process struct {
	spec    Spec
	files   []int         // the program's streams, and the control group that it starts in, if it has one
	program int           // its number
	stop    chan struct{} // closed: all is to be ended
	over    chan struct{} // closed: the program has ended

	mu   sync.Mutex
	sent map[int]bool // who got a signal of this round
	left map[int]bool // who got one after the program had ended
}

// first is the life of the first process. It ends with all that is in its namespaces.
func first() int {
	p := &process{stop: make(chan struct{}), over: make(chan struct{}), sent: map[int]bool{}, left: map[int]bool{}}
	unhandled()
	// Who started benchgraph may have left files open in it, and a directory among them would lead out of the sandbox.
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

// unhandled undoes what Go's runtime does about signals: the kernel lets a first process be ended by none that it does
// not handle. os/signal needs a millisecond or more for the same, as it changes threads for each signal.
func unhandled() {
	var standard [8]uint64 // SIG_DFL, without flags; no system has a larger sigaction
	for s := uintptr(1); s <= 64; s++ {
		if syscall.Signal(s) != syscall.SIGURG { // the runtime sends it to itself, and nothing comes of it
			// SIGKILL cannot be set
			_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&standard)), 0, 8, 0, 0)
		}
	}
}

// spareThreads makes the threads that Go's runtime will want. A program that uses up the numbers of processes leaves
// none for a thread, and the runtime ends a process that cannot make one.
func spareThreads() {
	var made sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		made.Add(1)
		go func() {
			runtime.LockOSThread() // for two at once are two threads
			made.Done()
			<-done
			runtime.UnlockOSThread() // so that it is kept
		}()
	}
	made.Wait()
	close(done)
}

// giveUp takes from this thread, and so from the program, all privileges for good. Nobody inside can look into this
// process.
func giveUp() (step string, err error) {
	for c := uintptr(0); c <= linux.CAP_LAST_CAP; c++ {
		// one that the kernel does not know
		if err := linux.Prctl(syscall.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != syscall.EINVAL {
			return "drop capabilities", err
		}
	}
	// root is nobody special, setuid gives nothing, nothing is ambient; each for good
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
		syscall.Close(fd) // so that the output ends with the program
	}
	return err
}

// program looks for the program as a shell would.
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

// reap takes the status of all that ends in here, as all orphans become children of this process, until nothing is
// left.
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
			p.program = -1 // its number can be another's now
		}
	}
}

// leave says what was left, and ends this process, and with it whatever may still be there. Who hears that
// there is nothing need not wait for the rest: the kernel takes milliseconds to remove the namespaces. With much in
// memory it takes longer, and whatever runs meanwhile would pay for that: so that is something.
func (p *process) leave(alone bool) {
	p.mu.Lock()
	os.Exit(send(Message{Gone: &Gone{alone && !p.holdsMuch(), len(p.left)}}))
}

// In memory are, at most, so many bytes and files that the kernel removes them in about a millisecond.
const fewBytes, fewFiles = 1 << 20, 256

// holdsMuch says whether the file systems in memory that were made for the program hold much.
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

// finish ends what is left when the program has ended, or all when it is to be ended: first it asks.
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
	p.leave(false) // which nothing outlives
}

// signal sends a signal to each process once, however late it appears, until the limit has passed. Should nothing be
// left before, this process ends meanwhile.
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
		if together { // at once, so that a shell does not see its commands end before itself
			_ = syscall.Kill(-1, sig)
		}
		time.Sleep(pause)
	}
}

// living are the numbers of all other processes in here that have not ended.
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
