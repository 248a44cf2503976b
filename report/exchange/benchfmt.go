package exchange

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"

	"golang.org/x/perf/benchfmt"
)

// Benchfmt writes the samples in the Go benchmark format, one file for each variant, so that
//
//	benchstat bench-baseline.txt bench-human.txt
//
// compares them. A line is one run, named Benchmark<benchmark>/commit=<commit>, with all its metrics. Configuration
// lines must be equal for all variants, because benchstat compares only lines with equal configuration. The unit of a
// value is <metric>-<unit>: several metrics may share a unit, but the direction "better" belongs to the metric.
func Benchfmt(p *document.Counted) (map[string][]byte, error) {
	variants := map[string][]document.Measurement{}
	for _, m := range p.Measurements {
		if m.Phase != "" {
			continue // benchstat would include it in its comparison
		}
		variant := strings.TrimPrefix(m.Candidate, m.Commit+"/")
		variants[variant] = append(variants[variant], m)
	}
	files := map[string][]byte{}
	for variant, measurements := range variants {
		text, err := benchmarkLines(p, measurements)
		if err != nil {
			return nil, err
		}
		files["bench-"+fileName(variant)+".txt"] = text
	}
	return files, nil
}

func benchmarkLines(p *document.Counted, measurements []document.Measurement) ([]byte, error) {
	var out bytes.Buffer
	w := benchfmt.NewWriter(&out)
	better := map[string]string{}
	for _, m := range measurements {
		if m.Better != "" {
			better[unitOf(m)] = word(m.Better)
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(better)) {
		record := &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"},
			OrigUnit: unit, Value: better[unit]}
		if err := w.Write(record); err != nil {
			return nil, err
		}
	}
	type run struct {
		benchmark, commit, candidate, class string
		block, order                        int
	}
	runOf := func(m document.Measurement) run {
		return run{m.Benchmark, m.Commit, m.Candidate, m.DeviceClass, m.Block, m.Order}
	}
	for len(measurements) > 0 {
		first := measurements[0]
		result := benchfmt.Result{Name: benchmarkName(first), Iters: 1, Config: configuration(p, first)}
		for len(measurements) > 0 && runOf(measurements[0]) == runOf(first) {
			result.Values = append(result.Values, benchfmt.Value{Value: measurements[0].Value,
				Unit: unitOf(measurements[0])})
			measurements = measurements[1:]
		}
		if err := w.Write(&result); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// configuration returns the configuration that all variants share. The format has no empty values.
func configuration(p *document.Counted, m document.Measurement) []benchfmt.Config {
	var config []benchfmt.Config
	for _, pair := range [][2]string{{"project-revision", p.Snapshot.Revision}, {"snapshot", p.Snapshot.ID},
		{"devices", m.DeviceClass}} {
		if value := printable.Line(pair[1]); value != "" {
			config = append(config, benchfmt.Config{Key: pair[0], Value: []byte(value), File: true})
		}
	}
	return config
}

// benchmarkName puts the commit into the name, so that it becomes a row of benchstat's table. Some readers do not
// recognize a benchmark whose name begins with a lower-case letter.
func benchmarkName(m document.Measurement) benchfmt.Name {
	name := []rune(word(m.Benchmark))
	if len(name) > 0 {
		name = append([]rune(strings.ToUpper(string(name[:1]))), name[1:]...)
	}
	return benchfmt.Name(string(name) + "/commit=" + word(m.Commit))
}

func unitOf(m document.Measurement) string {
	metric, unit := cmp.Or(unitWord(m.Metric), "value"), unitWord(m.Unit)
	if unit == "" || metric == unit {
		return metric
	}
	return metric + "-" + unit
}

// unitWord returns one field. Unlike in a name, a slash stays: it is common in units.
func unitWord(s string) string {
	return strings.Join(strings.Fields(printable.Line(s)), "_")
}

// fileName returns a variant's name that is safe in a file name. A changed name gets a digest, so that different
// variants never share a file.
func fileName(variant string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, variant)
	if safe == variant && len(safe) > 0 && len(safe) <= 100 {
		return safe
	}
	return fmt.Sprintf("%.80s-%x", safe, sha256.Sum256([]byte(variant)))[:min(len(safe), 80)+9]
}

// word returns one field of the benchmark format. In the format, white space ends a field, a slash or an equals sign
// begins a part of the name, and a hyphen before final digits begins the number of processors. word escapes these as
// in a URL.
func word(s string) string {
	s = printable.Line(s)
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ' ' || c == '/' || c == '=' || c == '%' || c >= utf8.RuneSelf,
			c == '-' && i+1 < len(s) && strings.Trim(s[i+1:], "0123456789") == "":
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
