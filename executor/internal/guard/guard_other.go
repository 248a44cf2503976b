//go:build !linux

package guard

// Start starts a program by launch. Only Linux guards this process from the program.
func Start(launch func() error) error { return launch() }
