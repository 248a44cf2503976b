//go:build !darwin

package machine

// The files of /proc say all that there is to know on Linux.
func memoryOfSystem() int64 { return 0 }

func cpuOfSystem() string { return "" }
