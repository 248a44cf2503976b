package draft

import (
	"cmp"
	"flag"
	"regexp"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
)

// Reading holds the flags that say which number decides, and how it is read.
type Reading struct{ Metric, Match, Better string }

// Flags declares the flags, each with a text in front of its help.
func (r *Reading) Flags(fs *flag.FlagSet, before string) {
	fs.StringVar(&r.Metric, "metric", "", before+"decide by the metric `NAME`; needed if the output has several")
	fs.StringVar(&r.Match, "match", "", before+"read the metric from the first group of `REGEXP`")
	fs.StringVar(&r.Better, "better", "", "with -match: `higher` or lower")
}

// Check refuses what no metric block could hold.
func (r *Reading) Check() error {
	const choice = "write -better=higher or -better=lower"
	switch r.Better {
	case "", "higher", "lower":
	default:
		return &cli.UsageError{Message: "-better " + r.Better + ": there is no such direction", Remedy: choice}
	}
	if (r.Match == "") != (r.Better == "") {
		return &cli.UsageError{Message: "-match and -better go together", Remedy: choice}
	}
	const group = "put parentheses around the number, as in -match 'took ([0-9.]+) s'"
	switch re, err := regexp.Compile(r.Match); {
	case err != nil:
		return &cli.UsageError{Message: "-match: " + err.Error(), Remedy: group}
	case r.Match != "" && re.NumSubexp() == 0:
		return &cli.UsageError{Message: "-match " + r.Match + ": it has no group", Remedy: group}
	}
	return nil
}

// Apply makes a benchmark read its number as the flags say. A metric that is named nowhere stays empty.
func (r *Reading) Apply(b *Bench) {
	b.Metric = cmp.Or(r.Metric, b.Metric)
	if r.Match == "" {
		return
	}
	b.Metric, b.Match, b.Better = cmp.Or(r.Metric, "result"), r.Match, r.Better
}
