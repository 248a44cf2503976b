package family

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// KillDescendants kills all that this process has started and that is left, at once and without asking, but for what is
// apart. It is for a process that is about to end in a hurry: who waits for a program then sees it fail.
func KillDescendants() {
	self := os.Getpid()
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		all, err := processes()
		if err != nil {
			return
		}
		in := map[int]bool{self: true}
		addChildren(all, in)
		session, _ := unix.Getsid(0)
		living := 0
		for _, p := range all {
			// Programs have a session of their own. What shares ours was there before, as in "server & exec
			// benchgraph".
			if in[p.pid] && p.session != session && !isApart(p.session) && p.state != 'Z' && p.state != 'X' {
				living++
				signalProc(p, unix.SIGKILL)
			}
		}
		if living == 0 {
			return
		}
	}
}
