// Package fuzzing has limits for the cost of reading hostile input, shared by all fuzz targets. The fuzzer itself
// limits the time: an input that takes ten seconds is a failure.
package fuzzing

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// Most is the largest amount of memory for one input of at most Longest bytes.
const (
	Most    = 256 << 20
	Longest = 1 << 20
)

// Frugal calls read and fails the test if read allocates more than Most in total. It skips inputs longer than
// Longest, whose cost each format limits itself.
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

// Contained calls read and fails the test if read uses more than Most at a time. It is for readers that evaluate
// their input, and so allocate much in total. It may call read twice.
func Contained(t testing.TB, read func()) {
	t.Helper()
	first, before := atFirst(), footprint()
	read()
	if after := footprint(); after <= before || after <= first+Most {
		return
	}
	// The growth may come from holes that thousands of earlier inputs left.
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

// footprint returns the address space of heap and stacks in bytes. It never shrinks: it is the largest size so far,
// including garbage that was not collected yet.
func footprint() uint64 { return held() + total("/memory/classes/heap/released:bytes") }

// held returns the part of the footprint that uses memory.
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

// Place makes a file and returns a function that replaces its content. The file stays open, since opening takes
// longer than reading most inputs.
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
