//go:build !linux

package applylock

// born is unknown on this system: only its number tells whether a process lives.
func born(int) (uint64, bool) { return 0, false }

// boot is unknown on this system.
func boot() string { return "" }
