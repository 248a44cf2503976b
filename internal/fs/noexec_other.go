//go:build !linux

package fs

// NoExec returns false: this system does not report whether a mount forbids programs.
func NoExec(string) bool { return false }
