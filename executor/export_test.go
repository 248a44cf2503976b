package executor

import "github.com/benchgraph/benchgraph/executor/family"

// Self is how this process calls itself on what it makes in an engine.
func Self() string { return newOwner().String() }

// BoundProcesses bounds how many processes a container or a sandbox may hold, and returns what takes that back.
func BoundProcesses(n int) func() {
	usual := mostProcesses
	mostProcesses = n
	return func() { mostProcesses = usual }
}

// IsGone says whether a process lives no more, and whether that is known.
func IsGone(pid int, born uint64) (gone, known bool) {
	return family.Starter{PID: pid, Born: born}.Gone()
}
