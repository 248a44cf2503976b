package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/stated"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// readAIPerf reads profile_export_aiperf.json: one object for each metric, with its unit.
func readAIPerf(r *reading, d map[string]any) bool {
	known := map[string]string{
		"time_to_first_token": "ttft", "inter_token_latency": "itl", "request_latency": "e2el",
		"request_count": "successful_requests", "error_request_count": "failed_requests", "goodput": "request_goodput",
		"total_isl": "total_input_tokens", "total_osl": "total_output_tokens",
		"total_output_tokens": "total_output_tokens",
	}
	found := false
	for _, key := range slices.Sorted(maps.Keys(d)) {
		of := jsondoc.Object(d[key])
		unit, ok := of["unit"].(string)
		name, is := known[key]
		if !is {
			name = names.Slug(key)
		}
		if !ok || of["avg"] == nil || name == "" {
			continue
		}
		found = true
		unit = units.Canonical(unit)
		if of["p50"] == nil && of["min"] == nil {
			r.addValue("", name, unit, of["avg"])
			continue
		}
		r.addValue("", name+"_mean", unit, of["avg"])
		for _, stat := range slices.Sorted(maps.Keys(of)) {
			if stat == "std" || stat == "min" || stat == "max" || len(stat) < 7 && strings.HasPrefix(stat, "p") {
				r.addValue("", name+"_"+stat, unit, of[stat])
			}
		}
	}
	if !found {
		return false
	}
	done, counted := r.Sample("successful_requests")
	failed, _ := r.Sample("failed_requests")
	asked := 0.0
	if n, ok := jsondoc.Follow(d, []string{"input_config", "loadgen", "request_count"}); ok {
		if count, _, err := jsondoc.Digits(n); err == nil {
			asked, _ = number.Parse(count)
		}
	}
	asked = max(asked, float64(stated.Requests(jsondoc.Text(jsondoc.Object(d["run_info"])["cli_command"]))),
		float64(r.command))
	switch {
	case d["was_cancelled"] == true:
		r.fail(invalid.RequestsFailed, "was_cancelled is true: the run was ended early")
	case counted && done.Value == 0:
		r.fail(invalid.NoneSucceeded, "0 of %.0f requests succeeded", max(asked, failed.Value))
	case failed.Value > 0 || counted && asked > done.Value:
		r.fail(invalid.RequestsFailed, "%.0f of %.0f requests succeeded", done.Value,
			max(asked, done.Value+failed.Value))
	}
	return true
}

// times returns the keys of statistics of times, each with its metric.
func times() [][2]string {
	return [][2]string{
		{"mean", "time_mean"}, {"stddev", "time_std"}, {"median", "time_median"}, {"min", "time_min"},
		{"max", "time_max"},
	}
}

// readHyperfine reads hyperfine --export-json. The times are in seconds. With several commands, each name begins with
// its command.
func readHyperfine(r *reading, d map[string]any) bool {
	results := jsondoc.List(d["results"], collect.MaxSamples)
	found := false
	for _, item := range results {
		of := jsondoc.Object(item)
		command := jsondoc.Text(of["command"])
		if command == "" || of["mean"] == nil {
			continue
		}
		found = true
		name := ""
		if len(results) > 1 {
			name = command
		}
		for _, k := range append(times(), [2]string{"user", "time_user"}, [2]string{"system", "time_system"}) {
			r.addValue(name, k[1], "s", of[k[0]])
		}
		for i, code := range jsondoc.List(of["exit_codes"], 1_000_000) {
			how := fmt.Sprintf("with exit status %v", code)
			if n, ok := code.(json.Number); ok && n.String() == "0" {
				continue
			} else if code == nil {
				how = "by a signal"
			}
			r.fail(invalid.RequestsFailed, "run %d of %q ended %s", i+1, lines.Clip(command, collect.MaxLabel), how)
			break
		}
	}
	return found
}

// readPytest reads pytest --benchmark-json. The times are in seconds.
func readPytest(r *reading, d map[string]any) bool {
	if jsondoc.Object(d["machine_info"]) == nil {
		return false
	}
	benchmarks, found := jsondoc.List(d["benchmarks"], collect.MaxSamples), false
	for _, item := range benchmarks {
		of := jsondoc.Object(item)
		stats, name := jsondoc.Object(of["stats"]), cmp.Or(jsondoc.Text(of["name"]), jsondoc.Text(of["fullname"]))
		if stats == nil {
			continue
		}
		found = true
		for _, k := range times() {
			r.addValue(name, k[1], "s", stats[k[0]])
		}
		r.addValue(name, "ops", "ops/s", stats["ops"])
	}
	return found
}

// readPyperf reads the file of pyperf -o. Values of warm-up runs and of calibrations do not count.
func readPyperf(r *reading, d map[string]any) bool {
	common := jsondoc.Object(d["metadata"])
	benchmarks, found := jsondoc.List(d["benchmarks"], collect.MaxSamples), false
	for _, item := range benchmarks {
		of := jsondoc.Object(item)
		own := jsondoc.Object(of["metadata"])
		var values []float64
		runs := jsondoc.List(of["runs"], 1_000_000)
		for _, run := range runs {
			values = append(values, floats(jsondoc.Object(run)["values"])...)
		}
		if len(values) == 0 {
			continue
		}
		found = true
		name := cmp.Or(jsondoc.Text(own["name"]), jsondoc.Text(common["name"]))
		unit := cmp.Or(jsondoc.Text(own["unit"]), jsondoc.Text(common["unit"]))
		part := "time"
		switch unit {
		case "byte":
			part = "memory"
		case "integer":
			part, unit = "value", ""
		default:
			unit = "s"
		}
		if len(benchmarks) == 1 {
			name = ""
		}
		r.stats(name, part, units.Canonical(unit), values)
	}
	return found
}

// readGoogle reads --benchmark_format=json of Google Benchmark. Repetitions of a benchmark are one sample, their mean.
func readGoogle(r *reading, d map[string]any) bool {
	benchmarks := jsondoc.List(d["benchmarks"], 100_000)
	type row struct {
		unit   string
		values []float64
	}
	rows := map[[2]string]*row{}
	var order [][2]string
	add := func(name, part, unit string, v any) {
		text, _, err := jsondoc.Digits(v)
		if printed, ok := v.(string); ok && err != nil {
			text = strings.Replace(printed, jsondoc.NotFinite, "NaN", 1)
		} else if err != nil {
			return
		}
		f, err := number.Parse(text)
		if err != nil {
			r.Refuse(named(name, part), 0, fmt.Sprintf("%q %v", lines.Clip(text, collect.MaxLabel), err))
			return
		}
		key := [2]string{name, part}
		if rows[key] == nil {
			rows[key] = &row{unit: unit}
			order = append(order, key)
		}
		if f, ok := units.Convert(f, unit, rows[key].unit); ok {
			rows[key].values = append(rows[key].values, f)
		}
	}
	repeated := map[string]bool{}
	for _, item := range benchmarks {
		if of := jsondoc.Object(item); jsondoc.Text(of["run_type"]) != "aggregate" {
			repeated[runName(of)] = true
		}
	}
	found := false
	for _, item := range benchmarks {
		of := jsondoc.Object(item)
		name := runName(of)
		if name == "" {
			continue
		}
		if of["error_occurred"] == true {
			found = true
			r.fail(invalid.RequestsFailed, "%s: %s", name, jsondoc.Text(of["error_message"]))
			continue
		}
		aggregate := jsondoc.Text(of["run_type"]) == "aggregate"
		if of["real_time"] == nil || aggregate && (repeated[name] || jsondoc.Text(of["aggregate_name"]) != "mean") {
			continue
		}
		found = true
		unit := units.Canonical(jsondoc.Text(of["time_unit"]))
		add(name, "real_time", unit, of["real_time"])
		add(name, "cpu_time", unit, of["cpu_time"])
		add(name, "items_per_second", "items/s", of["items_per_second"])
		add(name, "bytes_per_second", "B/s", of["bytes_per_second"])
	}
	for _, key := range order {
		mean := number.Round(meanOf(rows[key].values))
		r.Put(metrics.Sample{Metric: named(key[0], key[1]), Value: mean, Unit: rows[key].unit})
	}
	return found
}

// runName returns the name of a benchmark without the name of an aggregate.
func runName(of map[string]any) string {
	return cmp.Or(jsondoc.Text(of["run_name"]), jsondoc.Text(of["name"]))
}
