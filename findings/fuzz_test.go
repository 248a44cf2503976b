package findings

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/stats"
)

// sound fails unless findings can be written as JSON and have an outcome for the candidate.
func sound(t *testing.T, found Findings) {
	t.Helper()
	if _, err := json.Marshal(found); err != nil {
		t.Fatalf("%v: %+v", err, found)
	}
	if !slices.ContainsFunc(found.Comparisons, func(c stats.Comparison) bool {
		return c.Candidate == "c/one" && c.Outcome != ""
	}) {
		t.Fatalf("nothing is said of the candidate: %+v", found)
	}
}

// Gathered numbers are read from the store, where anybody may have put them. For any numbers, every candidate gets an
// outcome, and the findings can be written.
func FuzzSamples(f *testing.F) {
	var base, one []sample.Measurement
	for block := range 7 {
		base, one = append(base, number("base", block, 100+float64(block))), append(one, number("one", block, 200))
	}
	seed := func(rows []sample.Measurement) []byte {
		text, err := json.Marshal(rows)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	f.Add(seed(base), seed(one))
	f.Add(seed(base[:3]), seed(append(slices.Clone(one), number("one", -1, -math.MaxFloat64),
		number("one", 1<<40, 5e-324))))
	f.Add([]byte(`[{"metric": "items", "block": 1, "value": 0}, {"metric": "items", "block": 2, "value": -0.0}]`),
		[]byte("null"))
	c := contest()
	ends, store := map[string]engine.End{}, map[string]func([]byte){}
	for _, m := range c.Groups[0].Members {
		dir := f.TempDir()
		if err := sample.WriteGathered(dir, sample.Reading{}); err != nil {
			f.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(dir, "samples*"))
		if err != nil || len(names) != 1 {
			f.Fatal(names, err)
		}
		store[m.Name] = fuzzing.Place(f, names[0])
		ends[m.Bench.Address.String()] = engine.End{Entry: cache.Entry{Dir: dir}}
	}
	f.Fuzz(func(t *testing.T, base, one []byte) {
		store["base"](base)
		store["one"](one)
		var found Findings
		var err error
		fuzzing.Frugal(t, len(base)+len(one), func() { found, err = c.Judge(ends) })
		var rows []sample.Measurement
		if unread := json.Unmarshal(base, &rows) != nil || json.Unmarshal(one, &rows) != nil; (err != nil) != unread {
			t.Fatalf("unreadable: %t, and %v", unread, err)
		}
		if err == nil {
			sound(t, found)
		}
	})
}

// The same holds for the records of blocks, which are read from the store, too.
func FuzzRecord(f *testing.F) {
	record, err := json.Marshal(sample.Record{Block: 1, Seed: 7, Order: []string{"one", "base"},
		Members: map[string]sample.Member{
			"base": {Candidate: "c/base"}, "one": {Candidate: "c/one",
				Failure: &failure.Failure{Class: failure.Permanent, Message: "broken"}},
		}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add(bytes.ReplaceAll(record, []byte(`"failure"`), []byte(`"skipped":"x","f"`)))
	f.Add([]byte(`{"block": -1, "members": {"one": {"procedure": [{"name": "fix a", "value": "\u0000"}, {"name": ` +
		`"fix a"}], "artefacts": [{"node": "wheel.a[\"c/one\"]", "digest": "0"}]}}}`))
	c := contest()
	dir := f.TempDir()
	for _, name := range []string{"base", "one"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			f.Fatal(err)
		}
		fuzzing.Place(f, filepath.Join(dir, name, sample.StdoutFile))([]byte("7 items/s\n"))
	}
	entry, store := cache.Entry{Dir: dir}, fuzzing.Place(f, filepath.Join(dir, sample.RecordFile))
	ends := map[string]engine.End{}
	for _, b := range c.Groups[0].Blocks {
		ends[b.At.String()] = engine.End{Entry: entry}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		store(text)
		var found Findings
		var rows []stats.Comparison
		var err, failed error
		fuzzing.Frugal(t, len(text), func() {
			found, err = c.Judge(ends)
			rows, failed = c.Runs(&c.Groups[0], &c.Groups[0].Members[1], Run{"2", []cache.Entry{entry}},
				Run{"1", []cache.Entry{entry, entry}})
			sample.Summary(text)
		})
		var rec sample.Record
		if unread := json.Unmarshal(text, &rec) != nil; (err != nil) != unread {
			t.Fatalf("unreadable: %t, and %v", unread, err)
		}
		if (failed != nil) != (err != nil) {
			t.Fatalf("all blocks: %v; two runs: %v", err, failed)
		}
		if err == nil {
			sound(t, found)
			sound(t, Findings{Comparisons: renamed(rows)})
			again(t, &rec)
		}
	})
}

// renamed returns rows of two runs without the name of the run.
func renamed(rows []stats.Comparison) []stats.Comparison {
	for i := range rows {
		rows[i].Candidate, _, _ = strings.Cut(rows[i].Candidate, "@")
	}
	return rows
}

// again fails unless writing a record that was read, and reading and writing that once more, give the same text.
func again(t *testing.T, read *sample.Record) {
	t.Helper()
	text, err := json.Marshal(read)
	if err != nil {
		t.Fatalf("%+v: %v", read, err)
	}
	back := &sample.Record{}
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if once, err := json.Marshal(back); err != nil || !bytes.Equal(once, text) {
		t.Fatalf("%s was read, and written as %s: %v", text, once, err)
	}
}
