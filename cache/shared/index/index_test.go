package index

import (
	"runtime"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
)

// Segments without a line, as in a store from which everything was removed, are merged with others. A damaged line
// hides no other line.
func TestSegmentsAreMerged(t *testing.T) {
	b, err := bucket.Open(bucket.Place{URL: "file://" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	own, other := Copies{Dir: t.TempDir()}, Copies{Dir: t.TempDir()}
	table := New()
	line := func(i byte) string {
		return (cache.Key{i}).String() + " " + (cache.Key{}).String() + " {}"
	}
	for i := range mostSegments + 1 {
		var lines []string
		if i%3 > 0 {
			lines = []string{line(byte(i))}
		}
		if err := own.Write(t.Context(), b, table, lines); err != nil {
			t.Fatal(err)
		}
	}
	if err := own.Merge(t.Context(), b, table); err != nil {
		t.Fatal(err)
	}
	var told []string
	load := func() *Table {
		read, err := other.Load(t.Context(), b, func(text string) { told = append(told, text) })
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	if read := load(); len(told) > 0 || len(read.Lines) != len(table.Lines) || len(read.Segments) > mostSegments {
		t.Errorf("%d of %d lines in %d segments: %q", len(read.Lines), len(table.Lines), len(read.Segments), told)
	}
	broken := []string{"", "no key", line(254), "", "no key either"}
	_ = own.Write(t.Context(), b, table, broken) // the error is about what it wrote
	read := load()
	if _, there := read.Lines[cache.Key{254}]; !there || len(told) != 1 || strings.Count(told[0], "key") != 1 {
		t.Errorf("line found: %v; %q", there, told)
	}
}

// A small segment of many bytes is left out, and takes little memory. No warning quotes a long line.
func TestSegmentsThatFillTheMemory(t *testing.T) {
	b, err := bucket.Open(bucket.Place{URL: "file://" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	own, table := Copies{Dir: t.TempDir()}, New()
	good := (cache.Key{1}).String() + " " + (cache.Key{}).String() + " {}"
	long := strings.Repeat("x", 32<<20)
	_ = own.Write(t.Context(), b, table, []string{long}) // the error is about the line
	if err := own.Write(t.Context(), b, table, []string{good}); err != nil {
		t.Fatal(err)
	}
	var told []string
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read, err := Copies{Dir: t.TempDir()}.Load(t.Context(), b, func(text string) { told = append(told, text) })
	runtime.ReadMemStats(&after)
	if err != nil || read.Lines[cache.Key{1}] == nil || len(told) != 1 || !strings.Contains(told[0], "it is no index") {
		t.Errorf("%v, %d lines, %.200q", err, len(read.Lines), told)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("it takes %d bytes", took)
	}
	if err := table.add(long); err == nil || len(err.Error()) > 200 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}
