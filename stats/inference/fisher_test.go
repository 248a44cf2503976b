package inference

import (
	"math"
	"testing"
)

// The p-values were computed with exact integers.
func TestFisherExact(t *testing.T) {
	for _, tt := range []struct {
		a, b, c, d int
		p          float64
	}{
		{0, 7, 0, 7, 1}, {1, 7, 0, 7, 1}, {5, 7, 0, 7, 0.1060}, {8, 7, 0, 7, 0.02247}, {3, 1, 1, 3, 0.4857},
		{10, 2, 3, 15, 0.0005367}, {0, 0, 0, 0, 1},
	} {
		if p := FisherExact(tt.a, tt.b, tt.c, tt.d); math.Abs(p-tt.p) > 0.001*max(tt.p, 0.01) {
			t.Errorf("%d %d %d %d: p = %.5f, want %.5f", tt.a, tt.b, tt.c, tt.d, p, tt.p)
		}
	}
}
