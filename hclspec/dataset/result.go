package dataset

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// resultFields are the usual names of the columns of recorded results.
var resultFields = map[string][]string{
	"commit": fields[0].usual, "side": {"side", "phase", "variant"}, "agent": {"agent", "agent_name"},
	"runner": {"runner", "data_source", "run", "run_id"}, "metric": {"metric", "metric_name"},
	"value": {"value", "result"},
	"unit":  {"unit", "units"}, "model": {"model", "model_name"}, "gpus": {"gpus", "gpu_config", "gpu_count"},
	"installed": {"installed", "installed_commit"}, "methodology": {"methodology", "command_hash"},
	"status": {"status", "outcome"},
	"cause":  {"cause", "error", "reason", "category"}, "evidence": {"evidence", "log_line"},
	"flags":      {"flags", "flag"},
	"source":     {"source"},
	"supersedes": {"supersedes"}, "claim": {"claim"}, "count": {"count"}, "of": {"of"}, "percent": {"percent", "share"},
	"partition": {"partition"}, "verdict": {"verdict", "winner"}, "against": {"against"}, "fixable": {"fixable"},
}

// Results makes records of rows. A row is one record, or a commit with a list of records in its column results, or a
// commit with columns such as human_ttft_mean_ms, or objects such as human_metrics.
func Results(rows []Row) ([]recorded.Line, []Problem) {
	var lines []recorded.Line
	var problems []Problem
	for _, row := range rows {
		own, wrong := resultsOf(row)
		for _, text := range wrong {
			problems = append(problems, Problem{row, text, true})
		}
		if len(own) == 0 && len(wrong) == 0 && !hasResults(row) {
			problems = append(problems, Problem{row, "it has no result: no metric, status or claim", true})
		}
		lines = append(lines, own...)
	}
	return lines, problems
}

// hasResults reports whether a row has a list of results, even an empty one.
func hasResults(row Row) bool {
	_, ok := row.Fields["results"].([]any)
	return ok
}

func resultsOf(row Row) (lines []recorded.Line, wrong []string) {
	add := func(l recorded.Line, problem string) {
		if problem == "" {
			if _, err := recorded.Write([]recorded.Line{l}); err != nil {
				problem = err.Error()
			} else if err := l.Check(); err != nil {
				problem = err.Error()
			}
		}
		if problem != "" {
			wrong = append(wrong, problem)
			return
		}
		lines = append(lines, l)
	}
	if list, ok := row.Fields["results"].([]any); ok {
		for i, item := range list {
			own, ok := item.(map[string]any)
			if !ok {
				wrong = append(wrong, "result "+strconv.Itoa(i+1)+" is no object")
				continue
			}
			l, problem := result(own, row.Fields)
			if problem != "" {
				problem = "result " + strconv.Itoa(i+1) + ": " + problem
			}
			add(l, problem)
		}
		return lines, wrong
	}
	if cell(row.Fields, "metric") != "" || cell(row.Fields, "claim") != "" || cell(row.Fields, "verdict") != "" ||
		cell(row.Fields, "fixable") != "" {
		add(result(row.Fields, nil))
		return lines, wrong
	}
	measured, unread := wide(row.Fields)
	wrong = append(wrong, unread...)
	for _, l := range measured {
		add(l, "")
	}
	if len(lines) == 0 && cell(row.Fields, "status") != "" && cell(row.Fields, "side") != "" {
		add(result(row.Fields, nil))
	}
	return lines, wrong
}

// result reads one record. If the record names no commit, the enclosing row does. The model of that row is the declared
// one, not the measured one.
func result(own, outer map[string]any) (recorded.Line, string) {
	l := recorded.Line{
		Commit: cell(own, "commit"), Side: strings.ToLower(cell(own, "side")), Agent: cell(own, "agent"),
		Runner: cell(own, "runner"),
		Metric: cell(own, "metric"), Unit: cell(own, "unit"), Model: cell(own, "model"),
		Installed:   cell(own, "installed"),
		Methodology: cell(own, "methodology"), Cause: cell(own, "cause"), Evidence: cell(own, "evidence"),
		Source:     cell(own, "source"),
		Supersedes: cell(own, "supersedes"), Claim: cell(own, "claim"), Partition: cell(own, "partition"),
		Verdict: cell(own, "verdict"),
		Against: cell(own, "against"),
	}
	if l.Commit == "" && outer != nil {
		l.Commit = cell(outer, "commit")
	}
	if found := gpuCount().FindStringSubmatch(cell(own, "gpus")); found != nil {
		l.GPUs, _ = strconv.Atoi(found[1])
	}
	for _, name := range resultFields["flags"] {
		switch v := own[name].(type) {
		case []any:
			for _, item := range v {
				l.Flags = append(l.Flags, text(item))
			}
		default:
			if s := text(v); s != "" {
				l.Flags = append(l.Flags, s)
			}
		}
	}
	l.Flags = slices.DeleteFunc(l.Flags, func(s string) bool { return s == "" })
	if s := cell(own, "fixable"); s != "" {
		yes := s == "true" || s == "yes" || s == "1"
		l.Fixable = &yes
	}
	if l.Metric == "status" {
		l.Metric = ""
	}
	problem := ""
	status := strings.ToLower(cell(own, "status"))
	if word := strings.ToLower(cell(own, "value")); slices.Contains(recorded.Statuses(), word) || word == "error" {
		status = word // some tables have a reason in the place of a missing value
	} else {
		l.Value = float(own, "value", &problem)
	}
	l.Percent = float(own, "percent", &problem)
	l.Count, l.Of = whole(own, "count", &problem), whole(own, "of", &problem)
	switch status {
	case "", "success", "ok", "done":
	case "error", "failure", "crash", "exception", "timeout":
		l.Status = "failed"
	default:
		l.Status = status
	}
	return l, problem
}

// cell returns the first cell of a field that has a value.
func cell(fields map[string]any, field string) string {
	for _, name := range resultFields[field] {
		if s := text(fields[name]); s != "" {
			return s
		}
	}
	return ""
}

func float(fields map[string]any, field string, problem *string) *float64 {
	s := cell(fields, field)
	if s == "" {
		return nil
	}
	f, wrong := amount(strings.TrimSuffix(s, "%"))
	if wrong != "" {
		*problem = field + " " + wrong
		return nil
	}
	return &f
}

// divided matches a number whose commas have no other reading: 1,234.5 and 1,234,567, but not 1,234.
var divided = lazyregexp.New(`^[-+]?[1-9][0-9]{0,2}(,[0-9]{3})*,[0-9]{3}(\.[0-9]+|,[0-9]{3})$`)

// amount reads a number; wrong is the end of a sentence about a text that is none. Tables come from many countries:
// 1.234,5 is never read as 1.2345.
func amount(s string) (f float64, wrong string) {
	if strings.Contains(s, ",") {
		if !divided().MatchString(s) {
			return 0, quote(s) + " is no number: its comma may divide digits or be a decimal mark"
		}
		s = strings.ReplaceAll(s, ",", "")
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "xX_") {
		return 0, quote(s) + " is no number"
	}
	return f, ""
}

func whole(fields map[string]any, field string, problem *string) *int {
	s := cell(fields, field)
	if s == "" {
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		*problem = field + " " + quote(s) + " is no whole number"
		return nil
	}
	return &n
}

// sides are the prefixes of the columns of wide tables.
var sides = []string{"baseline", "human", "agent"}

// wide reads the measurements of all sides from one row. wrong lists the cells of measurements that hold no number.
func wide(fields map[string]any) (lines []recorded.Line, wrong []string) {
	base := recorded.Line{Commit: cell(fields, "commit"), Runner: cell(fields, "runner"),
		Source: cell(fields, "source")}
	add := func(side, column string, v any) {
		metric, unit := metricName(column)
		switch v.(type) {
		case json.Number, string:
		default:
			return
		}
		if unit == "" || text(v) == "" {
			return
		}
		f, unread := amount(text(v))
		if unread != "" {
			wrong = append(wrong, side+" "+column+" "+unread)
			return
		}
		l := base
		l.Side, l.Metric, l.Unit, l.Value = side, metric, unit, &f
		if side == "agent" {
			l.Agent = cell(fields, "agent")
		}
		lines = append(lines, l)
	}
	for _, name := range sortedKeys(fields) {
		for _, side := range sides {
			if own, ok := fields[name].(map[string]any); ok && name == side+"_metrics" || ok && name == side {
				for _, column := range sortedKeys(own) {
					add(side, column, own[column])
				}
			} else if column, ok := strings.CutPrefix(name, side+"_"); ok {
				add(side, column, fields[name])
			}
		}
	}
	return lines, wrong
}

// metricName returns the usual name of a metric and its unit, from a column; an empty unit is not known.
func metricName(column string) (name, unit string) {
	for _, u := range []struct{ suffix, unit string }{
		{"_tok_s", "tok/s"}, {"_tokens_s", "tok/s"}, {"_req_s", "req/s"}, {"_ms", "ms"}, {"_s", "s"},
	} {
		if found, ok := strings.CutSuffix(column, u.suffix); ok {
			name, unit = found, u.unit
			break
		}
	}
	if unit == "" {
		name = column
		for _, start := range []string{"ttft", "tpot", "itl", "mean_ttft", "mean_tpot", "mean_itl"} {
			if strings.HasPrefix(column, start) {
				unit = "ms"
			}
		}
		switch column {
		case "request_throughput":
			unit = "req/s"
		case "throughput", "output_token_throughput", "total_token_throughput", "output_throughput":
			unit = "tok/s"
		}
	}
	for _, statistic := range []string{"mean", "median", "p50", "p90", "p95", "p99", "avg"} {
		if rest, ok := strings.CutPrefix(name, statistic+"_"); ok {
			name = rest + "_" + statistic
		}
	}
	return name, unit
}

// Universe returns the commits of a table of results.
func Universe(rows []Row, lines []recorded.Line) (commits []recorded.Commit) {
	known := map[string]bool{}
	var about []Row // a row that is a result describes what was measured, and not what was asked for
	for _, row := range rows {
		if row.Fields["results"] != nil {
			about = append(about, row)
		}
	}
	described, _, _ := Commits(about, Options{}) // none, if the table has no such rows
	for i := range described {
		c := &described[i]
		own := recorded.Commit{Name: c.Name, Rev: c.Rev, Parent: c.Parent}
		for _, p := range c.Params {
			if model, ok := p.Value.(string); ok && p.Name == "model" {
				own.Model = model
			}
		}
		known[c.Name], known[c.Rev] = true, true
		commits = append(commits, own)
	}
	for _, l := range lines {
		if l.Commit != "" && !known[l.Commit] {
			known[l.Commit] = true
			commits = append(commits, recorded.Commit{Name: l.Commit})
		}
	}
	return commits
}
