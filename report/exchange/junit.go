package exchange

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Timestamp  string          `xml:"timestamp,attr,omitempty"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Classname string        `xml:"classname,attr"`
	Skipped   *junitSkipped `xml:"skipped"`
	Error     *junitProblem `xml:"error"`
	Failure   *junitProblem `xml:"failure"`
	Output    string        `xml:"system-out,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes junit.xml with a suite for each compare and a case for each candidate on its primary metric. A case
// fails if the candidate failed, was not built, or lost. It is an error if the cause is not the candidate (infra,
// no_baseline, not_comparable). It is skipped if the candidate was not meant or not able to run. Win, tie and
// inconclusive pass: a build breaks only if the candidate is shown to be slower.
func JUnit(p *document.Counted) (map[string][]byte, error) {
	suites := junitSuites{Name: printable.Line(p.Title)}
	at := map[string]int{}
	for i, t := range p.Compares {
		at[t.Compare] = i
		suite := junitSuite{Name: printable.Line(t.Compare), Properties: []junitProperty{
			{"snapshot", printable.Line(p.Snapshot.ID)}, {"benchgraph", printable.Line(p.Snapshot.Version)},
			{"revision", printable.Line(p.Snapshot.Revision)},
		}}
		if !p.Snapshot.Time.IsZero() {
			suite.Timestamp = p.Snapshot.Time.Format("2006-01-02T15:04:05")
		}
		suites.Suites = append(suites.Suites, suite)
	}
	for _, c := range p.Comparisons {
		if c.Primary {
			suites.Suites[at[c.Compare]].add(c, p.TitleOf(c.Commit))
		}
	}
	for _, s := range suites.Suites {
		suites.Tests += s.Tests
		suites.Failures += s.Failures
		suites.Errors += s.Errors
	}
	var out bytes.Buffer
	out.WriteString(xml.Header)
	encoder := xml.NewEncoder(&out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suites); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return map[string][]byte{"junit.xml": out.Bytes()}, nil
}

func (s *junitSuite) add(c stats.Comparison, title string) {
	result := junitCase{Name: printable.Line(c.Candidate + " " + c.Metric),
		Classname: printable.Line(c.Compare + "." + c.Benchmark)}
	reason := printable.Line(c.Reason)
	problem := &junitProblem{Message: reason, Type: string(c.Outcome), Text: titled(title, summary(c))}
	switch c.Outcome {
	case stats.Failed, stats.Wrong, stats.BuildFailed, stats.Loss:
		result.Failure = problem
		s.Failures++
	case stats.Infra, stats.NoBaseline, stats.NotComparable:
		result.Error = problem
		s.Errors++
	case stats.Skipped, stats.NoPatch, stats.Infeasible, stats.NotRun:
		result.Skipped = &junitSkipped{Message: strings.TrimSuffix(string(c.Outcome)+": "+reason, ": ")}
		s.Skipped++
	default:
		result.Output = titled(title, summary(c))
	}
	s.Tests++
	s.Cases = append(s.Cases, result)
}

// titled puts the title of a commit above a text.
func titled(title, text string) string {
	if title = printable.Line(title); title == "" {
		return text
	}
	return title + "\n" + text
}

// summary describes one row in words.
func summary(c stats.Comparison) string {
	text := string(c.Outcome)
	if c.Blocks >= 2 {
		text = fmt.Sprintf("%s against %s: %s, interval %s, %d blocks, %s", c.Outcome, printable.Line(c.Against),
			c.EffectText(), c.IntervalText(), c.Blocks, document.TestP(c))
	}
	if open := c.OpenText(); open != "" {
		text += "; " + open
	}
	for _, caveat := range document.CaveatTexts(c) {
		text += "; " + printable.Line(caveat)
	}
	return text
}
