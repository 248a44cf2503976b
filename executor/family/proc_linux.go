package family

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxEnviron is larger than the kernel's default limit for a program's environment (a quarter of an 8 MiB stack).
const maxEnviron = 8 << 20

// processes returns all visible processes.
func processes() ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []proc
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProc(pid); err == nil { // otherwise it has ended meanwhile
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("list processes: /proc shows none: mount the proc file system there")
	}
	return all, nil
}

func readProc(pid int) (proc, error) {
	var line [1024]byte // 52 numbers and a name of at most 64 bytes
	text, err := readSome("/proc/"+strconv.Itoa(pid)+"/stat", line[:])
	if err != nil {
		return proc{}, err
	}
	return parseStat(text)
}

// childList returns the numbers of the first children of a thread of this process, separated by blanks.
func childList(thread int) (string, error) {
	var line [256]byte
	text, err := readSome("/proc/self/task/"+strconv.Itoa(thread)+"/children", line[:])
	return strings.TrimSpace(text), err
}

// readSome reads the beginning of a file of /proc. It makes as few system calls as possible: it may run for every
// process of the machine whenever a program ends.
func readSome(path string, buf []byte) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// parseStat parses a line of /proc/PID/stat. The name in it is in parentheses and may contain any characters.
func parseStat(line string) (proc, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return proc{}, fmt.Errorf("process status %.40q: no name", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 20 {
		return proc{}, fmt.Errorf("process status %.40q: too few fields", line)
	}
	p := proc{name: line[open+1 : end], state: fields[0][0]}
	var errs [5]error
	p.pid, errs[0] = strconv.Atoi(strings.TrimSpace(line[:open]))
	p.parent, errs[1] = strconv.Atoi(fields[1])
	p.group, errs[2] = strconv.Atoi(fields[2])
	p.session, errs[3] = strconv.Atoi(fields[3])
	p.born, errs[4] = strconv.ParseUint(fields[19], 10, 64)
	return p, errors.Join(errs[:]...)
}

// bornOf returns the start time of a process in clock ticks since boot.
func bornOf(pid int) (uint64, error) {
	p, err := readProc(pid)
	return p.born, err
}

// markOf returns the mark in the environment of a process. If the environment cannot be read, ok is false: this
// process could not end such a process either.
func markOf(pid int) (Mark, bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return Mark{}, false
	}
	defer f.Close()
	env, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if err != nil {
		return Mark{}, false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(v, []byte(MarkName+"=")); ok {
			return parseMark(string(value))
		}
	}
	return Mark{}, false
}

// signalProc sends sig to p, and to no process that got p's number later.
func signalProc(p proc, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		_ = unix.Kill(p.pid, sig)
		return
	}
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	if born, err := bornOf(p.pid); err == nil && born == p.born {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// pidfds returns the processes for which this process holds a pidfd.
func pidfds() map[int]bool {
	held := map[int]bool{}
	infos, _ := os.ReadDir("/proc/self/fdinfo")
	for _, info := range infos {
		text, _ := os.ReadFile("/proc/self/fdinfo/" + info.Name()) // the file may be closed meanwhile
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "Pid:"); ok {
				if pid, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
					held[pid] = true
				}
			}
		}
	}
	return held
}

func pidNamespace() string {
	link, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		return "0"
	}
	return strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
}
