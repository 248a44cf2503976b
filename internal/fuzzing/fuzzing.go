// Package fuzzing holds what fuzz targets have in common: a bound on what reading hostile input may cost.
package fuzzing

import (
	"runtime/metrics"
	"testing"
)

// Most is how many bytes a reader may allocate, in sum, for an input of at most Longest bytes.
const (
	Most    = 256 << 20
	Longest = 1 << 20
)

// Frugal calls read and fails the test when it allocates more than Most. Inputs that are longer than Longest are passed
// over: what they may cost is a question of each format's own bounds.
func Frugal(t testing.TB, input int, read func()) {
	t.Helper()
	if input > Longest {
		t.Skip()
	}
	before := allocated()
	read()
	if n := allocated() - before; n > Most {
		t.Fatalf("%d MiB were allocated for an input of %d bytes", n>>20, input)
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
