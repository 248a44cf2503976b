package sample

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/stats"
)

// raw returns a directory with the output of one lifecycle: its standard output, and a file in $OUT.
func raw(t *testing.T, stdout, file string) string {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, StdoutFile), []byte(stdout), 0o644),
		os.Mkdir(filepath.Join(dir, OutDir), 0o755),
		os.WriteFile(filepath.Join(dir, OutDir, "result.txt"), []byte(file), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var items = hclspec.Metrics{Primary: "items", Custom: []hclspec.Metric{{Name: "items", Match: "([0-9.]+) items/s",
	Unit: "items/s", Better: "higher"}}}

func TestThePrimaryMetricOfALifecycle(t *testing.T) {
	inFile, elsewhere, misspelt := items, items, items
	inFile.File, elsewhere.File, misspelt.Primary = "result.txt", "../stdout", "itemz"
	dir := raw(t, "7 items/s\n", "8 items/s\n")
	if s, err := Primary(&hclspec.Benchmark{Metrics: items}, dir); err != nil || s.Value != 7 || s.Unit != "items/s" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := Primary(&hclspec.Benchmark{Metrics: inFile}, dir); err != nil || s.Value != 8 {
		t.Errorf("%+v, %v", s, err)
	}
	for want, spec := range map[string]hclspec.Metrics{"escapes": elsewhere,
		`nearest labels there: ["items"]`: misspelt} {
		_, err := Primary(&hclspec.Benchmark{Metrics: spec}, dir)
		if f, ok := errors.AsType[*engine.Failure](err); !ok || f.Rule != MetricMissing ||
			!strings.Contains(f.Message, want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Large files of $OUT are left out of the search for a metric: together they would delay each plan.
func TestASearchReadsFewBytes(t *testing.T) {
	dir := raw(t, "Done.\n", "8 items/s\n")
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, OutDir, name), make([]byte, bytesSearched/2), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if names := outputs(dir); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("searches %q", names)
	}
	if err := os.Truncate(filepath.Join(dir, OutDir, "b"), bytesSearched); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, OutDir, "c"), 1); err != nil {
		t.Fatal(err)
	}
	if names := outputs(dir); !slices.Equal(names, []string{"a", "c", "result.txt"}) {
		t.Errorf("searches %q", names)
	}
}

// A metric that stands in another place of the output than the benchmark reads is found there, and the remedy names it.
func TestTheMetricStandsElsewhere(t *testing.T) {
	lost, inFile, unread := items, items, items
	lost.File, inFile.File = "results.txt", "result.txt"
	unread.Custom = []hclspec.Metric{{Name: "items", Match: "([0-9.]+) items/s", File: "gone.txt"}}
	for want, tt := range map[string]struct {
		spec         hclspec.Metrics
		stdout, file string
	}{
		`file = "result.txt"`:                     {items, "Done.\n", "8 items/s\n"},
		`read it there, with file = "result.txt"`: {lost, "Done.\n", "8 items/s\n"},
		"read it there":                           {unread, "Done.\n", "8 items/s\n"},
		"leave out the attribute file":            {inFile, "8 items/s\n", "Done.\n"},
		"correct metrics.primary or":              {items, "Done.\n", "none\n"},
		"without the values of each request": {hclspec.Metrics{Format: "json", File: "result.txt", Primary: "rate"},
			"Done.\n", `{"rate": 5, "each": [` + strings.Repeat(`{"rate": 4}, `, jsondoc.MaxTail/13+1) + `0]}`},
	} {
		_, err := Primary(&hclspec.Benchmark{Metrics: tt.spec}, raw(t, tt.stdout, tt.file))
		if f, ok := errors.AsType[*engine.Failure](err); !ok || !strings.Contains(f.Remedy, want) {
			t.Errorf("%+v, want %q", err, want)
		}
	}
}

// A result may come from a store of strangers: no more of its files is read than the longest may have.
func TestFilesOfAResultAreBounded(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{RecordFile: longestRecord, gatheredFile: longestGathered} {
		for extra, want := range map[int64]bool{0: false, 1: true} {
			if err := errors.Join(os.WriteFile(filepath.Join(dir, name), nil, 0o644),
				os.Truncate(filepath.Join(dir, name), size+extra)); err != nil {
				t.Fatal(err)
			}
			_, err := ReadRecord(cache.Entry{Dir: dir})
			if name == gatheredFile {
				_, err = Gathered(cache.Entry{Dir: dir})
			}
			if err == nil || strings.Contains(err.Error(), name+": over ") != want {
				t.Errorf("%s of %d bytes: %v", name, size+extra, err)
			}
		}
	}
}

// A label with the name of the metric is no metric: the message says so, and how to read it.
func TestALabelIsNoMetric(t *testing.T) {
	b := &hclspec.Benchmark{Metrics: hclspec.Metrics{Format: "auto", Primary: "rate"}}
	_, err := Primary(b, raw(t, "rate: 11 x/s\n", ""))
	if err == nil || !strings.Contains(err.Error(), `metric "rate" { match = … }`) {
		t.Error(err)
	}
}

// A member is read under its present name, and a benchmark node reads back the numbers that it gathered.
func TestTheNumbersOfAMember(t *testing.T) {
	b := &hclspec.Benchmark{Metrics: items}
	b.Address, b.Candidate = hclspec.Address{Kind: "benchmark", Name: "speed", Key: "c/one", Keyed: true}, "c/one"
	dir := t.TempDir()
	if err := os.Rename(raw(t, "7 items/s\n", ""), filepath.Join(dir, "one")); err != nil {
		t.Fatal(err)
	}
	rec := &Record{Block: 3, Seed: 5, Order: []string{"base", "one"},
		Members: map[string]Member{"one": {Candidate: "renamed/since"}}}
	rows, evidence, err := rec.Read(cache.Entry{Dir: dir}, b, "one")
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	got := rows[0]
	if got.Candidate != "c/one" || got.Commit != "c" || got.Block != 3 || got.Position != 2 || got.Value != 7 {
		t.Errorf("%+v", got)
	}
	if err := WriteGathered(dir, Reading{rows, []Evidence{evidence}}); err != nil {
		t.Fatal(err)
	}
	if back, err := Gathered(cache.Entry{Dir: dir}); err != nil || len(back.Rows) != 1 || back.Rows[0] != got ||
		len(back.Blocks) != 1 || back.Blocks[0].Block != 3 {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestWhichWayAMetricIsBetter(t *testing.T) {
	for metric, want := range map[string]string{"items": stats.Higher, "ttft_mean": stats.Lower,
		"request_throughput": stats.Higher, "colour": ""} {
		if got, known := Better(items, metric, ""); got != want || known != (want != "") {
			t.Errorf("%s: %q", metric, got)
		}
	}
}
