// Package fuzzing has the bounds that fuzz targets share on the cost of reading hostile input. The fuzzer itself bounds
// the time: an input that takes ten seconds is a failure.
package fuzzing

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// Most is how many bytes a reader may need for one input of at most Longest bytes.
const (
	Most    = 256 << 20
	Longest = 1 << 20
)

// Frugal calls read and fails the test if read allocates more than Most in sum. Inputs longer than Longest are skipped:
// each format bounds their cost itself.
func Frugal(t testing.TB, input int, read func()) {
	t.Helper()
	if input > Longest {
		t.Skip()
	}
	before := total("/gc/heap/allocs:bytes")
	read()
	if n := total("/gc/heap/allocs:bytes") - before; n > Most {
		t.Fatalf("%d MiB were allocated for an input of %d bytes", n>>20, input)
	}
}

// Contained calls read and fails the test if read needs more than Most at a time. It is for readers that evaluate their
// input and so allocate much in sum. It may call read twice.
func Contained(t testing.TB, read func()) {
	t.Helper()
	first, before := atFirst(), footprint()
	read()
	if after := footprint(); after <= before || after <= first+Most {
		return
	}
	// That may be the holes that thousands of earlier inputs left.
	debug.FreeOSMemory()
	most := uint64(0)
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			most = max(most, held())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	read()
	close(done)
	if <-watched; most > first+Most {
		t.Fatalf("the process takes %d MiB, and had %d MiB at first", most>>20, first>>20)
	}
}

var atFirst = sync.OnceValue(footprint)

// footprint is the address space that heap and stacks have, in bytes. What they once had they keep, so it is not less
// than the most that they ever needed, or how often the collector let garbage lie.
func footprint() uint64 { return held() + total("/memory/classes/heap/released:bytes") }

// held is what of the footprint takes memory.
func held() uint64 {
	return total("/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes",
		"/memory/classes/heap/free:bytes",
		"/memory/classes/heap/stacks:bytes")
}

func total(names ...string) (sum uint64) {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}

// Place makes a file and returns what replaces its content. It stays open, since to open a file takes longer than to
// read most inputs.
func Place(f testing.TB, name string) func(content []byte) {
	f.Helper()
	file, err := os.Create(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { file.Close() })
	return func(content []byte) {
		if _, err := file.WriteAt(content, 0); err != nil {
			panic(err)
		}
		if err := file.Truncate(int64(len(content))); err != nil {
			panic(err)
		}
	}
}
