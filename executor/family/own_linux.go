package family

import "os"

// Own reports whether a process is this one, descends from it, or carries its mark. A process that is not visible
// here is not own.
func Own(pid int) bool {
	self := os.Getpid()
	for at := pid; at > 1; {
		if at == self {
			return true
		}
		p, err := readProc(at)
		if err != nil {
			break
		}
		at = p.parent
	}
	m, ok := markOf(pid)
	return ok && m.Starter == This()
}
