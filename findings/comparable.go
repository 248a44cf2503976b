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

// measuredBy is how the member was measured: on the hardware that its samples say, and else as declared; of what stood
// at another time, as its blocks say.
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

// Fields are the names by which a user may let something differ, sorted: sorts of fields of a methodology, and counts
// and settings that outputs state. A field with a longer name is let differ by its whole name, too.
func Fields() []string {
	names := slices.Concat(methodology.Sorts(), stated.Settings(), []string{"successful_requests", "failed_requests",
		"total_input_tokens", "total_output_tokens"}) // as sample.Counts has them
	slices.Sort(names)
	return slices.Compact(names)
}

// comparable decides whether a candidate's numbers may be held against the other's, and labels a row with what was
// allowed to differ.
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
		row.Outcome, row.Reason = stats.NotComparable, why
	}
	return row, why != ""
}

// settings holds the settings that the outputs of both sides state against each other: equal commands may still load
// another model, or ask at another rate. It returns why the numbers may not be compared, or the labels of what the user
// lets differ.
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

// varies says whether a setting has several values in the blocks of one side.
func varies(name string, blocks map[int]map[string]string) bool {
	seen := map[string]bool{}
	for _, settings := range blocks {
		seen[settings[name]] = true
	}
	return len(seen) > 1
}

// settingDiffers says in which block a setting differs between the sides. Sides that share no block are held against
// each other by all values that they have.
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

// amountsDiffer holds the total tokens of both sides, which have their own names for them, against each other: a server
// that says less is not faster.
func amountsDiffer(metric string, own map[int]float64, s *group.Standing, theirs map[int]float64) string {
	tolerance := cmp.Or(s.Bench.Metrics.TokenTolerance, rule.UsualTolerance)
	x, y := group.Mean(own), group.Mean(theirs)
	if group.Apart(x, y) <= tolerance {
		return ""
	}
	return fmt.Sprintf("%s: %.6g tok against %.6g tok, more than %.3g %% apart (token_tolerance in metrics)", metric, x,
		y, 100*tolerance)
}

// amountsVary doubts total tokens whose means may be compared: a wide tolerance lets them differ, they differ inside
// blocks, or there are none.
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
