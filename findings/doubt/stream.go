package doubt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/inference"
)

// A server decides when the parts of an answer come, what is in them, and how many tokens it says there were. So the
// times of a stream are held against the time of the whole answer, and the tokens against the text.

const (
	// shares of an answer's time that pass after its first token
	atOnce, drawnOut = 0.1, 0.5
	// by which the characters of a token may be fewer than those of the other side's
	leastText = 0.7
)

// Streams doubts a gain in the times of a stream that the whole answers do not have, answers that came at once on one
// side alone, and tokens for which there is less text than on the other side.
func Streams(row stats.Comparison, s, base *group.Standing) []stats.Caveat {
	if row.Outcome != stats.Win {
		return nil
	}
	var list []stats.Caveat
	add := func(format string, args ...any) {
		list = append(list, stats.Caveat{Kind: stats.CaveatContradiction, Text: fmt.Sprintf(format, args...)})
	}
	if gain, whole, moved := movedInStream(row.Metric, s, base); moved {
		add("by %s of the stream, an answer of %s took %s less than one of %s, and a whole answer took %s",
			family(row.Metric), s.Title(), seconds(gain), base.Title(), longer(whole))
	}
	own, theirs := group.Mean(drawn(s)), group.Mean(drawn(base))
	if len(drawn(s)) > 0 && own < atOnce && theirs > drawnOut {
		add("the answers of %s came at once, %.2g %% of their time after the first token, and those of %s one token "+
			"after the other, %.2g %%: how many tokens they had is known from the server alone", s.Title(), 100*own,
			base.Title(), 100*theirs)
	}
	own, theirs = group.Mean(textOfToken(s)), group.Mean(textOfToken(base))
	if len(textOfToken(s)) > 0 && own < leastText*theirs {
		add("%s", lessText(s, base, own, theirs))
	}
	return list
}

// lessText says how many characters each token of both sides has.
func lessText(s, base *group.Standing, own, theirs float64) string {
	return fmt.Sprintf("a token of %s has %.3g characters of text, and one of %s %.3g", s.Title(), own, base.Title(),
		theirs)
}

// family is the part of a stream that a metric is about: ttft, tpot or itl; empty: none.
func family(metric string) string {
	of, _, _ := strings.Cut(metric, "_")
	if of == "ttft" || of == "tpot" || of == "itl" {
		return of
	}
	return ""
}

// movedInStream says by how many seconds the part of an answer that a metric is about got shorter, and the whole
// answer, and whether the whole answer saved less than half of that.
func movedInStream(metric string, s, base *group.Standing) (gain, whole float64, moved bool) {
	of := family(metric)
	if of == "" {
		return 0, 0, false
	}
	own, theirs := answers(s), answers(base)
	part, other := inStream(s, of), inStream(base, of)
	var claimed, saved, short []float64
	for _, block := range slices.Sorted(maps.Keys(own)) {
		before, both := theirs[block]
		a, known := part[block]
		b, alike := other[block]
		if both && known && alike {
			claimed, saved = append(claimed, b-a), append(saved, before-own[block])
			short = append(short, before-own[block]-(b-a)/2)
		}
	}
	if len(claimed) < stats.FewestBlocks {
		return 0, 0, false
	}
	gain, _, _ = inference.MeanInterval(claimed, clockConfidence)
	whole, _, _ = inference.MeanInterval(saved, clockConfidence)
	_, _, most := inference.MeanInterval(short, clockConfidence)
	return gain, whole, gain > 0 && most < 0
}

// inStream is how long a part of a mean answer took, in seconds by block: up to the first token, or, as the times
// between tokens say, all that came after.
func inStream(s *group.Standing, of string) map[int]float64 {
	times, rest := map[int]float64{}, perAnswer(s)
	for block, v := range s.Series[of+"_mean"] {
		v, ok := units.Convert(v, s.Units[of+"_mean"], "s")
		n, known := rest[block]
		switch {
		case !ok:
		case of == "ttft" || of == "e2el":
			times[block] = v
		case known:
			times[block] = v * (n - 1)
		}
	}
	return times
}

// answers is how long a whole answer took on average, in seconds by block: as printed, or as the times of its parts
// say.
func answers(s *group.Standing) map[int]float64 {
	if whole := inStream(s, "e2el"); len(whole) > 0 {
		return whole
	}
	times, first := map[int]float64{}, inStream(s, "ttft")
	for block, rest := range inStream(s, "tpot") {
		if begun, ok := first[block]; ok {
			times[block] = begun + rest
		}
	}
	return times
}

// drawn is the share of a mean answer's time that passed after its first token, by block.
func drawn(s *group.Standing) map[int]float64 {
	shares, first := map[int]float64{}, inStream(s, "ttft")
	for block, rest := range inStream(s, "tpot") {
		if begun, ok := first[block]; ok && begun+rest > 0 {
			shares[block] = rest / (begun + rest)
		}
	}
	return shares
}

// perAnswer is how many tokens a mean answer has, by block, where it has more than one.
func perAnswer(s *group.Standing) map[int]float64 {
	counts := sample.Counts()
	requests, tokens := s.Counted(counts[0]), map[int]float64{}
	for block, n := range s.Counted(counts[3]) {
		if of := requests[block]; of > 0 && n > of {
			tokens[block] = n / of
		}
	}
	return tokens
}

// textOfToken is how many characters of text there are for each token that was counted, by block.
func textOfToken(s *group.Standing) map[int]float64 {
	lengths := map[int]float64{}
	for block, n := range s.Counted(sample.Counts()[3]) {
		if text, known := s.Counts[sample.Characters][block]; known && n > 0 {
			lengths[block] = text / n
		}
	}
	return lengths
}
