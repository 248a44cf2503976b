// Package cores divides work among all cores.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Share calls do on all cores for consecutive ranges [from, to) of the numbers below n. Each number is in exactly one
// range, and a range has at most stride numbers. Share returns when all calls have returned.
func Share(n, stride int, do func(from, to int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+stride-1)/stride) {
		workers.Go(func() {
			for from := int(next.Add(int64(stride))) - stride; from < n; from = int(next.Add(int64(stride))) - stride {
				do(from, min(from+stride, n))
			}
		})
	}
	workers.Wait()
}
