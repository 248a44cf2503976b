//go:build !darwin

package machine

// On Linux, /proc has everything.
func memoryOfSystem() int64 { return 0 }

func cpuOfSystem() string { return "" }
