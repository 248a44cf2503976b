package stats

// mostLooks is the largest number of looks that Looks returns; more of them cost power and save little.
const mostLooks = 5

// Looks returns the numbers of blocks at which a contrast is judged: from samples to most at equal distances, rounded
// down, one look for every two further blocks and five at most. 4 and 15 give 4, 6, 9, 12, 15; equal numbers give one
// look. No look lies below FewestBlocks unless most does. A samples below 1 counts as 1, a most below samples as
// samples.
//
// Looking more than once and stopping at the first verdict makes false verdicts more frequent. Each look is therefore
// judged at Pocock's level, at which the whole sequence has the error rate 1-confidence: 0.0158 a look for five looks
// at 5 %. The level supposes looks at equal distances from 0. The looks here lie closer together, hence share more of
// their blocks, which makes the level slightly conservative.
func Looks(samples, most int) []int {
	most = max(most, samples, 1)
	first := max(samples, min(FewestBlocks, most), 1)
	count := min(mostLooks, 1+(most-first+1)/2)
	looks := make([]int, count)
	for i := range looks {
		looks[i] = most
		if i < count-1 {
			looks[i] = first + i*(most-first)/(count-1)
		}
	}
	return looks
}

// Next returns the number of blocks to measure before the next look; 0: there is no further look.
func Next(looks []int, blocks int) int {
	for _, look := range looks {
		if look > blocks {
			return look - blocks
		}
	}
	return 0
}
