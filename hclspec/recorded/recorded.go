// Package recorded keeps the results of other studies beside the results of benchgraph: listed, counted and never
// compared.
//
// Less is known about the making of such a number than of a number of benchgraph, so no verdict rests on it. The
// statements of a study about its numbers (totals, winners, causes without evidence) are checked against the numbers,
// and refused if they do not follow.
package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Line is one line of a file of recorded results. It is a measurement or an outcome of one side of a commit or, if
// Claim, Verdict or Fixable is set, a statement of a study about its results.
type Line struct {
	Commit      string   `json:"commit,omitempty"` // name, or revision from 7 digits
	Side        string   `json:"side,omitempty"`   // baseline, human, agent, or the name of a variant
	Agent       string   `json:"agent,omitempty"`  // name of the agent, for side agent
	Runner      string   `json:"runner,omitempty"` // the experiment of the result
	Metric      string   `json:"metric,omitempty"`
	Value       *float64 `json:"value,omitempty"` // nil: the study has none
	Unit        string   `json:"unit,omitempty"`
	Model       string   `json:"model,omitempty"` // in full
	GPUs        int      `json:"gpus,omitempty"`  // 0: not recorded
	Installed   string   `json:"installed,omitempty"`
	Methodology string   `json:"methodology,omitempty"` // equal only if all conditions were equal
	Status      string   `json:"status,omitempty"`      // one of Statuses; empty: follows from the value
	Cause       string   `json:"cause,omitempty"`
	Evidence    string   `json:"evidence,omitempty"` // line of a log
	Flags       []string `json:"flags,omitempty"`    // reasons why the value does not measure its metric
	Source      string   `json:"source,omitempty"`   // where it was published
	Supersedes  string   `json:"supersedes,omitempty"`

	Claim     string   `json:"claim,omitempty"` // name of a count
	Count     *int     `json:"count,omitempty"`
	Of        *int     `json:"of,omitempty"`
	Percent   *float64 `json:"percent,omitempty"`
	Partition string   `json:"partition,omitempty"` // name shared by counts of one source that sum to the whole
	Verdict   string   `json:"verdict,omitempty"`   // of Side against Against
	Against   string   `json:"against,omitempty"`
	Fixable   *bool    `json:"fixable,omitempty"`
}

// Statuses are the states that a study may record without a value.
func Statuses() []string {
	return []string{"failed", "infra", "skipped", "not_run", "no_image", "no_patch", "build_failed", "infeasible"}
}

// says reports whether a line is a statement about results and not a result.
func (l *Line) says() bool { return l.Claim != "" || l.Verdict != "" || l.Fixable != nil }

// Variant returns the name of a side in reports: for an agent, its own name.
func (l *Line) Variant() string {
	if l.Side == "agent" && l.Agent != "" {
		return l.Agent
	}
	return l.Side
}

const (
	maxLines = 1_000_000
	maxLine  = 1 << 20
)

// Read reads JSON lines. The error names the first bad line.
func Read(text []byte) ([]Line, error) {
	var lines []Line
	number := 0
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		number++
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case len(line) > maxLine:
			return nil, fmt.Errorf("line %d has %d bytes", number, len(line))
		case len(lines) == maxLines:
			return nil, fmt.Errorf("there are more than %d lines", maxLines)
		}
		var l Line
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if err := l.Check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// positive matches the units of durations and rates.
var positive = lazyregexp.New(`^([nuµμm]?s|sec(onds)?|min|h|.*/s)$`)

// Check returns an error for a line that cannot be true: a value that is no number or no measurement, or a line without
// a record.
func (l *Line) Check() error {
	switch {
	case l.Value != nil && (math.IsNaN(*l.Value) || math.IsInf(*l.Value, 0)):
		return fmt.Errorf("the value is no number")
	case l.Value != nil && *l.Value < 0 && positive().MatchString(l.Unit):
		return fmt.Errorf("%v %s is no measurement: a duration or a rate is at least 0", *l.Value, l.Unit)
	case l.Claim != "" && l.Count == nil && l.Percent == nil:
		return fmt.Errorf("the claim %q has neither count nor percent", l.Claim)
	case l.Claim == "" && (l.Commit == "" || l.Side == "" && l.Fixable == nil):
		return fmt.Errorf("it names no commit and side")
	case l.Status != "" && !slices.Contains(Statuses(), l.Status):
		return fmt.Errorf("the status %q is none of %q", l.Status, Statuses())
	case !l.says() && l.Metric == "" && l.Status == "":
		return fmt.Errorf("it has neither metric nor status")
	}
	return nil
}

// Write writes JSON lines.
func Write(lines []Line) ([]byte, error) {
	var b bytes.Buffer
	for i := range lines {
		text, err := json.Marshal(&lines[i])
		if err != nil {
			return nil, err
		}
		b.Write(append(text, '\n'))
	}
	return b.Bytes(), nil
}
