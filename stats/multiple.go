package stats

import "github.com/benchgraph/benchgraph/stats/inference"

// correct applies Holm to the testable contrasts and fills P and PT. It reports for each contrast whether it survives
// the t test at the look's level.
func correct(contrasts []contrast, rule Rule) []bool {
	var exact, normal []float64
	var members []int
	for i := range contrasts {
		if c := &contrasts[i]; c.testable {
			members = append(members, i)
			exact = append(exact, c.RawP)
			normal = append(normal, c.estimate.P())
		}
	}
	exact, normal = inference.Holm(exact), inference.Holm(normal)
	survives := make([]bool, len(contrasts))
	for k, i := range members {
		c := &contrasts[i]
		c.P, c.PT = exact[k], normal[k]
		survives[i] = normal[k] <= rule.level(c.Blocks)+1e-12
	}
	return survives
}
