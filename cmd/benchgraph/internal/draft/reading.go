package draft

import (
	"cmp"
	"errors"
	"flag"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/metrics"
)

// Globs is a flag with patterns of files, which may be given several times.
type Globs []string

func (g *Globs) String() string { return strings.Join(*g, ",") }

// Set appends a pattern.
func (g *Globs) Set(pattern string) error {
	if !doublestar.ValidatePattern(pattern) {
		return errors.New("it is no pattern of files, like **/*_test.go or bench/**")
	}
	*g = append(*g, pattern)
	return nil
}

// Reading has the flags that name the deciding number and say how it is read.
type Reading struct{ Metric, Match, Better string }

// Flags declares the flags; before is put before the help of each.
func (r *Reading) Flags(fs *flag.FlagSet, before string) {
	fs.StringVar(&r.Metric, "metric", "", before+"decide by the metric `NAME`; needed if the output has several")
	fs.StringVar(&r.Match, "match", "", before+"read the metric from the first group of `REGEXP`")
	fs.StringVar(&r.Better, "better", "",
		before+"`higher` or lower: needed with -match, and where the name of -metric says neither")
}

// Check returns an error for flags that make no valid metric block.
func (r *Reading) Check() error {
	const choice = "write -better=higher or -better=lower"
	switch r.Better {
	case "", "higher", "lower":
	default:
		return &cli.UsageError{Message: "-better " + r.Better + ": there is no such direction", Remedy: choice}
	}
	if r.Match != "" && r.Better == "" {
		return &cli.UsageError{Message: "-match and -better go together", Remedy: choice}
	}
	if r.Better != "" && r.Match == "" && r.Metric == "" {
		return &cli.UsageError{Message: "-better goes with -match or -metric",
			Remedy: "say which number: -metric=NAME, or -match 'took ([0-9.]+) s'"}
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

// Apply sets how a benchmark reads its number. The metric stays empty if nothing names it.
func (r *Reading) Apply(b *Bench) {
	b.Metric = cmp.Or(r.Metric, b.Metric)
	if r.Match == "" && r.Better == "" {
		return
	}
	b.Metric, b.Match, b.Better = cmp.Or(r.Metric, "result"), r.Match, r.Better
}

// preferred are the metrics that decide if an output has several. The first that the output has wins.
var preferred = []string{
	"ns/op", "time_mean", "output_token_throughput", "request_throughput", "total_token_throughput", "latency_avg",
}

// Directed returns an error for a metric of the samples if nothing tells whether more of it is better. It accepts a
// metric that is not among them: whoever reads that one reports it.
func Directed(name string, samples []metrics.Sample) error {
	s, found := metrics.Find(samples, name)
	if _, known := metrics.Better(name, s.Unit); known || !found {
		return nil
	}
	return cli.Hint("Say it with -better=higher or -better=lower.",
		"-metric %s: neither its name nor its unit says whether more of it is better", name)
}

// Deciding returns the deciding metric: a preferred one, or the only one with a known direction.
func Deciding(samples []metrics.Sample) (string, error) {
	var names []string
	for _, s := range samples {
		if _, known := metrics.Better(s.Metric, s.Unit); known {
			names = append(names, s.Metric)
		}
	}
	for _, name := range preferred {
		if slices.Contains(names, name) {
			return name, nil
		}
	}
	switch {
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", cli.Hint("Say how it is read: -match 'REGEXP with a group' -better=higher.",
			"no number in the output of the command has a known direction: %d were found", len(samples))
	}
	return "", cli.Hint("Say which one decides with -metric: "+printable.Some(names, 8)+".",
		"the output of the command has %d metrics", len(names))
}
