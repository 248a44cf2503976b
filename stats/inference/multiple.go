package inference

import "slices"

// Holm corrects p-values for their number, so that the chance of any false rejection among them keeps its level. The
// results stand in the order of ps.
func Holm(ps []float64) []float64 {
	corrected := make([]float64, len(ps))
	var largest float64
	for rank, i := range ascending(ps) {
		largest = max(largest, min(1, ps[i]*float64(len(ps)-rank)))
		corrected[i] = largest
	}
	return corrected
}

// BenjaminiHochberg turns p-values into q-values. The q of a value is the share of false ones to expect in the list of
// all values whose q is not greater. The results stand in the order of ps.
func BenjaminiHochberg(ps []float64) []float64 {
	corrected := make([]float64, len(ps))
	order := ascending(ps)
	smallest := 1.0
	for rank, i := range slices.Backward(order) {
		smallest = min(smallest, ps[i]*(float64(len(ps))/float64(rank+1)))
		corrected[i] = smallest
	}
	return corrected
}

// ascending returns the indexes of ps, ordered by value. Equal values keep their order.
func ascending(ps []float64) []int {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	return order
}
