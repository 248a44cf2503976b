package formats

import (
	"fmt"
	"io"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/lines"
)

// Log is the content of one log or result file.
type Log struct {
	Detected string            `json:"detected"` // as Result.Format; empty: no known format
	Samples  []metrics.Sample  `json:"samples"`
	Warnings []metrics.Warning `json:"warnings"`
	// nil: no rule explains a failure, and the result, if there is one, is whole
	Failure *classify.Match `json:"failure"`
}

// ParseLog reads a log or a result file of unknown origin. format is one of those of Lookup; open opens the file from
// its beginning, and is called more than once. If there are samples, only lines after the last sample can be a failure:
// a refused connection while a server was starting is none. A result that is not whole is a failure by itself: fewer
// requests than were asked for, two results, a text that was cut off.
func ParseLog(format string, open func() (io.ReadCloser, error), rules []classify.Rule) (Log, error) {
	log := Log{Samples: []metrics.Sample{}, Warnings: []metrics.Warning{}}
	guessed := format == "auto"
	if guessed {
		found, err := pass(open, Detect)
		if err != nil {
			return log, err
		}
		format = found
	}
	if format != "" {
		p, err := Lookup(format)
		if err != nil {
			return log, err
		}
		r, err := pass(open, func(f io.Reader) (metrics.Result, error) { return p.Parse(metrics.Output{Stdout: f}) })
		if err != nil {
			return log, err
		}
		if guessed && len(r.Samples) == 0 && len(r.Warnings) == 1 && r.Warnings[0].Text == collect.NoDocument {
			r = metrics.Result{} // only a bracket looked like the beginning of a document
		}
		log.Detected = r.Format
		log.Samples = append(log.Samples, r.Samples...)
		log.Warnings = append(log.Warnings, r.Warnings...)
		log.Failure = r.Failure
	}
	after := 0
	for _, s := range log.Samples {
		after = max(after, s.Line)
	}
	switch {
	case log.Failure != nil && log.Failure.Rule != invalid.Incomplete:
		return log, nil // a count of requests proves more than any line
	case len(log.Samples) > 0 && after == 0 && format != "gobench":
		return log, nil // the strings of a document are data
	case log.Failure != nil:
		after = 0 // a line before the result may be the reason
	}
	_, err := pass(open, func(f io.Reader) (bool, error) {
		m, ok, err := classify.After(rules, after, f)
		if ok && (log.Failure == nil || !m.Wrapper) {
			log.Failure = &m
		}
		return ok, err
	})
	return log, err
}

// pass opens and reads the file once. The log of a container runtime is read as the text that it carries.
func pass[T any](open func() (io.ReadCloser, error), read func(io.Reader) (T, error)) (T, error) {
	f, err := open()
	if err != nil {
		var none T
		return none, err
	}
	v, err := read(lines.Unwrap(f))
	if closed := f.Close(); err == nil && closed != nil {
		err = fmt.Errorf("close: %w", closed)
	}
	return v, err
}
