//go:build !linux

package applylock

// born is not known here: only the number of a process tells whether it lives.
func born(int) (uint64, bool) { return 0, false }

// boot is not known here.
func boot() string { return "" }
