package inference

import (
	"math"
	"testing"
)

func TestGeometricMeanOfEqualValuesIsThatValue(t *testing.T) {
	for _, v := range []float64{30000, 0.1, 7, 1e300, 123456.789} {
		if got := GeometricMean([]float64{math.Log(v), math.Log(v), math.Log(v)}); math.Abs(got-v) > 1e-13*v ||
			v == 30000 && got != v {
			t.Errorf("%v, want %v", got, v)
		}
	}
}
