package inference

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// Pocock returns the level for each of a number of looks at which the chance that any of them rejects is alpha. The
// value is that of Pocock's tables (Biometrika 64, 1977) where they give it to four digits, else it is integrated.
func Pocock(looks int, alpha float64) float64 {
	printed := [...]float64{1: 0.05, 2: 0.0294, 3: 0.0221, 4: 0.0182, 5: 0.0158}
	if math.Abs(alpha-0.05) < 1e-9 && looks < len(printed) {
		return printed[looks]
	}
	if looks == 1 {
		return alpha
	}
	// The boundary lies between the one for a single look and Bonferroni's.
	near := distuv.UnitNormal.Quantile(1 - alpha/2)
	far := distuv.UnitNormal.Quantile(1 - alpha/2/float64(looks))
	for range 40 {
		middle := (near + far) / 2
		if crosses(middle, looks) > alpha {
			near = middle
		} else {
			far = middle
		}
	}
	return 2 * distuv.UnitNormal.CDF(-far)
}

// Overall returns the p of a whole sequence of looks, one of which has the p-value p: the chance that without an effect
// any of the looks has such a small p.
func Overall(p float64, looks int) float64 {
	boundary := -distuv.UnitNormal.Quantile(p / 2)
	if looks <= 1 || p >= 1 || math.IsInf(boundary, 1) {
		return p
	}
	return max(p, crosses(boundary, looks))
}

// nodes of the quadrature: the densities are smooth, so 32 give ten digits.
const nodes = 32

// crosses returns the probability that a random walk S with normal steps of variance 1 has |S_k| >= boundary*sqrt(k) at
// any k from 1 to looks. It carries the density of the walks inside the boundary from look to look (Armitage, McPherson
// and Rowe 1969) and sums the probability of crossing at each look. One minus the remaining probability would lose all
// digits of a small result.
func crosses(boundary float64, looks int) float64 {
	leaves := func(from, edge float64) float64 {
		return distuv.UnitNormal.CDF(from-edge) + distuv.UnitNormal.CDF(-from-edge)
	}
	at, weight := make([]float64, nodes), make([]float64, nodes)
	quad.Legendre{}.FixedLocations(at, weight, -boundary, boundary)
	density := make([]float64, nodes)
	for i, x := range at {
		density[i] = distuv.UnitNormal.Prob(x)
	}
	crossed := leaves(0, boundary)
	for k := 2; k <= looks; k++ {
		edge := boundary * math.Sqrt(float64(k))
		for i, from := range at {
			crossed += weight[i] * density[i] * leaves(from, edge)
		}
		newAt, newWeight, newDensity := make([]float64, nodes), make([]float64, nodes), make([]float64, nodes)
		quad.Legendre{}.FixedLocations(newAt, newWeight, -edge, edge)
		for i, x := range newAt {
			for j, from := range at {
				newDensity[i] += weight[j] * density[j] * distuv.UnitNormal.Prob(x-from)
			}
		}
		at, weight, density = newAt, newWeight, newDensity
	}
	return crossed
}
