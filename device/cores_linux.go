package device

import "golang.org/x/sys/unix"

// Cores returns the numbers of the cores in this process's affinity mask, ascending; nil: not known.
func Cores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cores []int
	for i := 0; len(cores) < set.Count(); i++ {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores
}
