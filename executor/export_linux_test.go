package executor

import "github.com/benchgraph/benchgraph/executor/family"

// BoundProcesses bounds how many processes a sandbox may hold, and returns what takes that back.
func BoundProcesses(n int) func() {
	usual := mostProcesses
	mostProcesses = n
	return func() { mostProcesses = usual }
}

// IsGone says whether a process lives no more, and whether that is known.
func IsGone(pid int, born uint64) (gone, known bool) {
	return family.Starter{PID: pid, Born: born}.Gone()
}
