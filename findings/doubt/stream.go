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

// A server decides when it sends the parts of an answer, what is in them, and how many tokens it reports. So the times
// of a stream are compared with the time of the whole answer, and the tokens with the text.

const (
	// shares of an answer's time after its first token: below atOnce it came at once, above drawnOut token by token
	atOnce, drawnOut = 0.1, 0.5
	// characters per token, relative to the other side's, below which tokens are doubted
	leastText = 0.7
	mostEmpty = 0.01 // share of the requests: so many more answers without text than on the other side are doubted
)

// Streams doubts a win: a gain in the times of a stream that the whole answers do not have, answers that came at once
// on the candidate's side alone, tokens with less text than on the other side, and more answers without text.
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
	empty, usual := s.Counts[sample.EmptyAnswers], base.Counts[sample.EmptyAnswers]
	of := group.Mean(s.Counted(sample.Counts()[0]))
	if len(empty) > 0 && len(usual) > 0 && group.Mean(empty)-group.Mean(usual) > mostEmpty*of {
		add("%.3g of %.6g answers of %s have no text, and %.3g of those of %s", group.Mean(empty), of, s.Title(),
			group.Mean(usual), base.Title())
	}
	return list
}

// lessText compares the characters of text for each token, in words.
func lessText(s, base *group.Standing, own, theirs float64) string {
	return fmt.Sprintf("a token of %s has %.3g characters of text, and one of %s %.3g", s.Title(), own, base.Title(),
		theirs)
}

// family returns the part of a stream that a metric is about: ttft, tpot or itl; empty: none.
func family(metric string) string {
	of, _, _ := strings.Cut(metric, "_")
	if of == "ttft" || of == "tpot" || of == "itl" {
		return of
	}
	return ""
}

// movedInStream returns how many seconds shorter the part of an answer that a metric is about became, and how many the
// whole answer. moved reports whether the whole answer saved less than half of that gain.
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

// inStream returns the duration of a part of an average answer, in seconds by block: for ttft up to the first token,
// for e2el the whole answer, and else the time after the first token.
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

// answers returns the average duration of a whole answer, in seconds by block: as printed, or as the sum of its parts.
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

// drawn returns the share of an average answer's time that passed after its first token, by block.
func drawn(s *group.Standing) map[int]float64 {
	shares, first := map[int]float64{}, inStream(s, "ttft")
	for block, rest := range inStream(s, "tpot") {
		if begun, ok := first[block]; ok && begun+rest > 0 {
			shares[block] = rest / (begun + rest)
		}
	}
	return shares
}

// perAnswer returns the number of tokens in an average answer, by block, where it is more than one.
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

// textOfToken returns the characters of text for each counted token, by block.
func textOfToken(s *group.Standing) map[int]float64 {
	lengths := map[int]float64{}
	for block, n := range s.Counted(sample.Counts()[3]) {
		if text, known := s.Counts[sample.Characters][block]; known && n > 0 {
			lengths[block] = text / n
		}
	}
	return lengths
}
