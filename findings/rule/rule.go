// Package rule describes the judging rule of a file as a block records it: which parts of a rule take effect for a row,
// and how two rules differ in them.
package rule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Of returns the rule by which a file judges a benchmark under the compares that name it: looks, margins, the
// definitions of metrics. The rule is in no key of a block. Each block records it, so that a change after the first
// block is noticed.
func Of(looks []int, d hclspec.Design, m hclspec.Metrics, compares []*hclspec.Compare) []methodology.Field {
	var fields []methodology.Field
	add := func(name, value string) { fields = append(fields, methodology.Field{Name: name, Value: value}) }
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	add("looks", strings.Trim(fmt.Sprint(looks), "[]"))
	add("pairing", d.Pairing)
	add("burn_in", strconv.Itoa(d.BurnIn))
	add("primary", m.Primary)
	add("format", m.Format)
	add("file", m.File)
	add("token_tolerance", number(m.TokenTolerance))
	for _, c := range m.Custom {
		own := definition(c.Name)
		add(own+"match", c.Match)
		add(own+"json", c.JSON)
		add(own+"file", c.File)
		add(own+"unit", c.Unit)
		add(own+"better", c.Better)
		add(own+"tie", number(c.Tie))
	}
	for _, r := range m.Require {
		add("require "+r.Metric, number(r.Value))
	}
	for _, c := range compares {
		own := ownRule(c)
		add(own+"tie", number(c.Tie))
		add(own+"confidence", number(c.Confidence))
	}
	return fields
}

const (
	comparePrefix   = "compare."
	usualConfidence = 0.95
	// UsualTolerance is the relative difference of total tokens up to which two servers count as having said the same.
	UsualTolerance = 0.005
)

// definition returns the prefix of the parts of a rule that define one metric.
func definition(metric string) string { return "metric " + metric + " " }

// ownRule returns the prefix of the parts that belong to one compare.
func ownRule(c *hclspec.Compare) string { return comparePrefix + c.Address.Instance() + " " }

// Rule holds the parts of a judging rule by name.
type Rule map[string]string

// From returns the rule that a block recorded.
func From(fields []methodology.Field) Rule {
	r := Rule{}
	for _, f := range fields {
		r[f.Name] = f.Value
	}
	return r
}

// Recorded returns the rule that the first block recorded. If the primary metric was undecided then, it is the one that
// the same apply took from the output of that block, as later blocks of the apply recorded it.
func Recorded(first *sample.Evidence, blocks []sample.Evidence) Rule {
	r := From(first.Rule)
	for _, e := range blocks {
		if own := From(e.Rule)["primary"]; r["primary"] == sample.Undecided && e.Run == first.Run && own != "" {
			r["primary"] = own
		}
	}
	return r
}

// Row is a row that a rule judges.
type Row struct {
	Compare *hclspec.Compare
	Metric  string
	Unit    string // as the outputs print it
	Primary bool
}

func (r Rule) has(name string) bool { _, ok := r[name]; return ok }

func (r Rule) number(name string) float64 { f, _ := strconv.ParseFloat(r[name], 64); return f }

func percent(f float64) string { return fmt.Sprintf("%.6g %%", 100*f) }

// part is one part of a rule as it takes effect, for people.
type part struct{ name, value string }

// ofMetric lists the parts in effect that concern the metric of a row.
func (r Rule) ofMetric(of Row) []part {
	own := definition(of.Metric)
	better := r[own+"better"]
	if better == "" {
		better, _ = sample.Better(hclspec.Metrics{}, of.Metric, of.Unit)
	}
	unit := cmp.Or(r[own+"unit"], of.Unit)
	return []part{{"better", better}, {"tie", percent(r.tie(of))}, r.quoted("match", own+"match"),
		r.quoted("json", own+"json"), r.quoted("file", own+"file"), {"unit", quoted(unit)}}
}

// ofPrimary lists the parts in effect that concern only rows on the primary metric.
func (r Rule) ofPrimary(of Row) []part {
	parts := []part{r.quoted("primary", "primary"), r.quoted("format", "format"), r.quoted("file of metrics", "file"),
		{"token_tolerance", percent(cmp.Or(r.number("token_tolerance"), UsualTolerance))},
		{"burn_in", strconv.Itoa(int(r.number("burn_in")))}, {"looks", strings.ReplaceAll(r["looks"], " ", ", ")},
		{"pairing", r["pairing"]}}
	if r.has(ownRule(of.Compare) + "confidence") {
		parts = append(parts, part{"confidence", percent(r.number(ownRule(of.Compare) + "confidence"))})
	}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if strings.HasPrefix(name, "require ") {
			parts = append(parts, part{name, r[name]})
		}
	}
	return parts
}

func (r Rule) quoted(name, key string) part {
	if r[key] == sample.Undecided && key == "primary" {
		return part{name, "not named"}
	}
	return part{name, quoted(r[key])}
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return strconv.Quote(text)
}

// tie returns the margin in effect for a row.
func (r Rule) tie(of Row) float64 {
	for _, name := range []string{definition(of.Metric) + "tie", ownRule(of.Compare) + "tie"} {
		if tie := r.number(name); tie > 0 {
			return tie
		}
	}
	return stats.DefaultTie(of.Metric)
}

// Changes describes, for the parts in effect for a row, how the later rule now differs from r.
func (r Rule) Changes(now Rule, of Row) (list []string) {
	added := definition(of.Metric) + "match"
	switch {
	case r.has("samples"): // an earlier version recorded r, without the definitions of metrics
	case !r.has(added) && now.has(added):
		list = append(list, "metric "+of.Metric+" was declared since")
	default:
		list = append(list, differing(r.ofMetric(of), now.ofMetric(of))...)
	}
	if of.Primary {
		list = append(list, differing(r.ofPrimary(of), now.ofPrimary(of))...)
	}
	return list
}

func differing(before, after []part) (list []string) {
	was := map[string]string{}
	for _, p := range before {
		was[p.name] = p.value
	}
	for _, p := range after {
		old := was[p.name]
		delete(was, p.name)
		switch {
		case old == p.value:
		case old == "":
			list = append(list, fmt.Sprintf("%s is %s and was not set", p.name, p.value))
		case p.value == "":
			list = append(list, fmt.Sprintf("%s was %s and is not set", p.name, old))
		default:
			list = append(list, fmt.Sprintf("%s was %s and is %s", p.name, old, p.value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if was[name] != "" {
			list = append(list, fmt.Sprintf("%s was %s and is not set", name, was[name]))
		}
	}
	return list
}

// Late describes the rule of a compare that was declared after r was recorded. It returns "" if the compare judges as
// any compare does, or as a compare that r has. Late adds the compare to r.
func (r Rule) Late(now Rule, of Row) (text string) {
	own := ownRule(of.Compare)
	if r.has(own+"confidence") || !now.has(own+"confidence") {
		return ""
	}
	tie, confidence := now.number(own+"tie"), now.number(own+"confidence")
	usual := tie == 0 && confidence == usualConfidence
	for name := range r {
		if other, ok := strings.CutSuffix(name, "confidence"); ok && strings.HasPrefix(name, comparePrefix) {
			usual = usual || r.number(other+"tie") == tie && r.number(name) == confidence
		}
	}
	r[own+"tie"], r[own+"confidence"] = now[own+"tie"], now[own+"confidence"]
	if usual {
		return ""
	}
	return fmt.Sprintf("%swas declared since: its tie is %s and its confidence %s", own,
		percent(now.tie(of)), percent(confidence))
}
