package standstill

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	running = unix.CLOCK_MONOTONIC
	always  = unix.CLOCK_BOOTTIME // advances while the machine is suspended
)

// ready returns how long each thread of this process has run or was ready to run; nil: the kernel does not report it.
func ready() map[int]time.Duration {
	const dir = "/proc/self/task/"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := map[int]time.Duration{}
	for _, t := range threads {
		text, err := os.ReadFile(dir + t.Name() + "/schedstat")
		if err != nil {
			continue // the thread has ended
		}
		var ran, waited time.Duration
		thread, err := strconv.Atoi(t.Name())
		if _, bad := fmt.Sscan(string(text), &ran, &waited); bad != nil || err != nil {
			return nil
		}
		if ran+waited > 0 { // a kernel that does not count writes 0
			all[thread] = ran + waited
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
