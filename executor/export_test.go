package executor

// Self is how this process calls itself on what it makes in an engine.
func Self() string { return newOwner().String() }

// BoundProcesses bounds how many processes a container or a sandbox may hold, and returns what takes that back.
func BoundProcesses(n int) func() {
	usual := mostProcesses
	mostProcesses = n
	return func() { mostProcesses = usual }
}
