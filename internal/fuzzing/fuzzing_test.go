package fuzzing

import (
	"runtime"
	"testing"
)

// failing remembers that a test failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Fatalf(string, ...any) { f.failed = true }

var sink [][]byte

func TestFrugal(t *testing.T) {
	for size, want := range map[int]bool{1 << 10: false, 40 << 20: true} {
		f := &failing{TB: t}
		Frugal(f, 0, func() {
			for range 8 {
				sink = [][]byte{make([]byte, size)}
			}
		})
		if f.failed != want {
			t.Errorf("8 × %d bytes: failed = %t", size, f.failed)
		}
	}
}

// Garbage that is collected before more memory is needed does not count.
func TestContained(t *testing.T) {
	for kept, want := range map[int]bool{1: false, 20: true} {
		f := &failing{TB: t}
		Contained(f, func() {
			sink = nil
			for range 20 {
				runtime.GC()
				sink = append(sink[:min(len(sink), kept-1)], make([]byte, 40<<20))
			}
		})
		if f.failed != want {
			t.Errorf("%d × 40 MiB of 20 are kept: failed = %t", kept, f.failed)
		}
	}
	sink = nil
}

func BenchmarkBounds(b *testing.B) {
	for name, bound := range map[string]func(){
		"frugal":    func() { Frugal(b, 0, func() {}) },
		"contained": func() { Contained(b, func() {}) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				bound()
			}
		})
	}
}
