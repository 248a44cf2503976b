package family

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// KillDescendants sends SIGKILL to all descendants of this process at once, except programs of StartApart. It is for
// a process that must end at once: a waiting caller sees its program fail.
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
			// Each program has its own session. A process in our session is older than this program, as in "server &
			// exec benchgraph".
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
