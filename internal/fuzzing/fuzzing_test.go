package fuzzing

import "testing"

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

func BenchmarkFrugal(b *testing.B) {
	for b.Loop() {
		Frugal(b, 0, func() {})
	}
}
