package formats

import (
	"encoding/json"
	"fmt"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// jsonLeaves reads every number of the last JSON document, named by its path.
type jsonLeaves struct{}

func (jsonLeaves) Parse(out metrics.Output) (metrics.Result, error) {
	var t jsondoc.Tail
	if err := t.Copy(out.Stdout); err != nil {
		return metrics.Result{}, fmt.Errorf("json: %w", err)
	}
	c := collect.New("json")
	before := collect.NewEarlier()
	document := c.Documents(&t, func(document any) {
		all := jsondoc.Leaves(document, collect.MaxSamples+1)
		before.Full = before.Full || len(all) > collect.MaxSamples
		for _, l := range all {
			before.Note(l.Path, l.Value)
		}
	})
	c.Failure = invalid.Partly(document)
	all := jsondoc.Leaves(document, collect.MaxSamples+1)
	for _, l := range all[:min(len(all), collect.MaxSamples)] {
		if n, ok := l.Value.(json.Number); ok {
			c.Add(l.Path, n.String(), units.OfPath(l.Path), 0)
			continue
		}
		text, remark, err := jsondoc.Digits(l.Value)
		switch {
		case err == number.ErrInfinite:
			c.Warn(0, "%s: %v", l.Path, err)
		case err == nil:
			c.Warn(0, "%s: %s", l.Path, remark)
			c.Add(l.Path, text, units.OfPath(l.Path), 0)
		}
	}
	if len(all) > collect.MaxSamples {
		c.Warn(0, "more than %d values: the rest is left out", collect.MaxSamples)
	}
	c.Again(before)
	return c.Finish(), nil
}
