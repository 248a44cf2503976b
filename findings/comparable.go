package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/findings/doubt"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/rule"
	"github.com/benchgraph/benchgraph/metrics/stated"
	"github.com/benchgraph/benchgraph/stats"
)

// measuredBy returns the methodology of a member: its declared fields and the hardware of its samples. For the standing
// of one run, the fields come from the records of the blocks.
func measuredBy(s *group.Standing) methodology.Description {
	fields := slices.Clip(s.Methodology.Fields)
	if s.Run != "" {
		fields = nil
		for _, name := range slices.Sorted(maps.Keys(s.Procedure)) {
			fields = append(fields, methodology.Field{Name: name, Value: s.Procedure.Of(name)})
		}
	}
	return methodology.Description{Fields: append(fields, methodology.Field{Name: "hardware",
		Value: strings.Join(s.Hardware(), "; ")})}
}

// Fields returns the sorted names by which a user may allow a difference: sorts of methodology fields, and counts and
// settings that outputs state. A methodology field may also be allowed by its whole name.
func Fields() []string {
	names := slices.Concat(methodology.Sorts(), stated.Settings(), []string{"successful_requests", "failed_requests",
		"total_input_tokens", "total_output_tokens"}) // canonical names of sample.Counts
	slices.Sort(names)
	return slices.Compact(names)
}

// comparable decides whether a candidate's numbers may be compared with the reference's. It returns the row with labels
// for the allowed differences, and true if the comparison is refused.
func (c *Case) comparable(row stats.Comparison, s, base *group.Standing) (stats.Comparison, bool) {
	own := measuredBy(s)
	diff, labels := methodology.Compatible(own, measuredBy(base), c.Allow)
	row.Methodology = own.Digest()
	row.Caveats = append(row.Caveats, labels...)
	if err := methodology.Refuse(s.Title(), base.Title(), diff); err != nil {
		row.Outcome, row.Reason = stats.NotComparable, err.Error()
		return row, true
	}
	if classes := s.Hardware(); len(classes) > 1 {
		row.Outcome, row.Reason = stats.NotComparable,
			"its blocks were measured on several classes of hardware: "+strings.Join(classes, "; ")
		return row, true
	}
	why, more := c.settings(s, base)
	row.Caveats = append(row.Caveats, more...)
	if why == "" {
		why, more = c.incomplete(s, base)
		row.Caveats = append(row.Caveats, more...)
	}
	if why == "" {
		why = cmp.Or(gap(row.Metric, s, base), doubt.Unbelievable(row.Metric, s, base))
	}
	if why != "" {
		row.Outcome, row.Reason = stats.NotComparable, why+doubt.Raw(row.Metric, s, base)
	}
	return row, why != ""
}

// settings compares the settings that the outputs of both sides state: equal commands may still load another model. It
// returns the reason to refuse the comparison, or labels for the differences that the user allows.
func (c *Case) settings(s, base *group.Standing) (refusal string, labels []stats.Caveat) {
	settings := func(side *group.Standing) (names []string, of map[int]map[string]string) {
		of = map[int]map[string]string{}
		for _, e := range side.Evidence {
			of[e.Block] = e.Settings
			names = slices.AppendSeq(names, maps.Keys(e.Settings))
		}
		return names, of
	}
	ownNames, own := settings(s)
	names, theirs := settings(base)
	names = append(names, ownNames...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if stated.Amount(name) && varies(name, theirs) {
			continue
		}
		diff := settingDiffers(name, own, s, theirs, base)
		switch {
		case diff == "":
		case slices.Contains(c.Allow, name):
			labels = append(labels, stats.Caveat{Kind: stats.CaveatMismatch, Text: "compared in spite of a different " +
				diff})
		default:
			return "the outputs do not have the same settings: " + diff, labels
		}
	}
	return "", labels
}

// varies reports whether a setting has several values in the blocks of one side.
func varies(name string, blocks map[int]map[string]string) bool {
	seen := map[string]bool{}
	for _, settings := range blocks {
		seen[settings[name]] = true
	}
	return len(seen) > 1
}

// settingDiffers describes the first block in which a setting differs between the sides; empty: none. Sides that share
// no block are compared by the sets of their values.
func settingDiffers(name string, own map[int]map[string]string, s *group.Standing, theirs map[int]map[string]string,
	base *group.Standing) string {
	text := func(value string) string {
		if value == "" {
			return "nothing"
		}
		return strconv.Quote(value)
	}
	all := [2]map[string]bool{{}, {}}
	shared := false
	for _, block := range slices.Sorted(maps.Keys(own)) {
		all[0][own[block][name]] = true
		if other, ok := theirs[block]; ok {
			shared = true
			if own[block][name] != other[name] {
				return fmt.Sprintf("%s is %s in the output of %s and %s in that of %s in block %d", name,
					text(own[block][name]), s.Title(), text(other[name]), base.Title(), block)
			}
		}
	}
	for _, settings := range theirs {
		all[1][settings[name]] = true
	}
	if shared || maps.Equal(all[0], all[1]) {
		return ""
	}
	values := func(of map[string]bool) string { return text(strings.Join(slices.Sorted(maps.Keys(of)), "; ")) }
	return fmt.Sprintf("%s is %s in the outputs of %s and %s in those of %s", name, values(all[0]), s.Title(),
		values(all[1]), base.Title())
}

// amountsDiffer compares the mean total tokens of both sides, since a server that says less is not faster; empty:
// equal.
func amountsDiffer(metric string, own map[int]float64, s *group.Standing, theirs map[int]float64) string {
	tolerance := cmp.Or(s.Bench.Metrics.TokenTolerance, rule.UsualTolerance)
	x, y := group.Mean(own), group.Mean(theirs)
	if group.Apart(x, y) <= tolerance {
		return ""
	}
	return fmt.Sprintf("%s: %.6g tok against %.6g tok, more than %.3g %% apart (token_tolerance in metrics)", metric, x,
		y, 100*tolerance)
}

// amountsVary returns caveats about total tokens that amountsDiffer accepts: a wide tolerance lets the means differ,
// blocks differ although the means agree, or nothing was generated.
func amountsVary(metric string, own map[int]float64, s *group.Standing, theirs map[int]float64,
	base *group.Standing) []stats.Caveat {
	const inBlock = 0.02
	doubt := func(format string, args ...any) []stats.Caveat {
		return []stats.Caveat{{Kind: stats.CaveatRequests, Text: metric + ": " + fmt.Sprintf(format, args...)}}
	}
	x, y := group.Mean(own), group.Mean(theirs)
	switch {
	case x == 0 && y == 0 && metric == "total_output_tokens":
		return doubt("0 in each run of %s and of %s: nothing was generated", s.Title(), base.Title())
	case group.Apart(x, y) > rule.UsualTolerance:
		return doubt("%.6g of %s against %.6g of %s, which token_tolerance lets pass", x, s.Title(), y, base.Title())
	}
	var blocks []int
	for _, block := range slices.Sorted(maps.Keys(own)) {
		if other, ok := theirs[block]; ok && group.Apart(own[block], other) > inBlock {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	first := blocks[0]
	return doubt("more than %g %% apart in %s, although the means agree: %.6g of %s against %.6g of %s in block %d",
		100*inBlock, words.Blocks(blocks), own[first], s.Title(), theirs[first], base.Title(), first)
}
