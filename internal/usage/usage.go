// Package usage measures the resources that this process has used.
package usage

import (
	"runtime/metrics"
	"syscall"
	"time"
)

// Memory returns the bytes in heap and stacks.
func Memory() (bytes uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	for _, sample := range samples {
		bytes += sample.Value.Uint64()
	}
	return bytes
}

// Processor returns the processor time so far; 0 if the kernel does not report it.
func Processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
