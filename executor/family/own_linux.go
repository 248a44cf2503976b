package family

import "os"

// Own says whether a process is this one, or was started by it: it descends from it, or carries its mark. A process
// that cannot be seen from here is somebody else's.
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
