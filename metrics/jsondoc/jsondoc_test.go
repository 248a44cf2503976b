package jsondoc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestAKeyTwiceMakesTwoDocuments(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [{"b": ":{"}, {"b": "\\"}], ":": {}, "c": -Infinity}`: "map[::map[] a:[map[b::{] map[b:\\]] c:\x7f]",
		`[1, {"a": {"b": 1}, "a": [true, null]}]`:                    "[1 map[a:map[b:1]]] [1 map[a:[true <nil>]]]",
		"{\"a\": 1, \"a\": 2} {\"b\": 3}":                            "map[a:1] map[a:2] map[b:3]",
	} {
		got := ""
		Each([]byte(text), func(document any) { got += fmt.Sprintf(" %v", document) })
		if want = " " + want; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// The cost of a document does not grow with the length of its line. Compare the times of 64 KiB and of 4 MiB.
func BenchmarkManyDocumentsInOneLine(b *testing.B) {
	for _, unit := range []string{`{"a":1} `, `[1]{"a":1}`} {
		for _, bytes := range []int{64 << 10, 4 << 20} {
			b.Run(fmt.Sprint(unit, bytes), func(b *testing.B) {
				src := []byte(strings.Repeat(unit, bytes/len(unit)))
				n := 0
				for b.Loop() {
					Each(src, func(any) { n++ })
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/document")
			})
		}
	}
}

// A tail keeps the end of an output in memory of about its own size, however the output is split into writes.
func TestATailIsBounded(t *testing.T) {
	var tail Tail
	if err := tail.Copy(strings.NewReader("whole")); err != nil || tail.Dropped() || string(tail.Bytes()) != "whole" {
		t.Errorf("%q, dropped %v, %v", tail.Bytes(), tail.Dropped(), err)
	}
	long := bytes.Repeat([]byte("0123456789abcdef"), MaxTail/16)
	for _, p := range [][]byte{long[:MaxTail/3], long, []byte("end")} {
		if n, err := tail.Write(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := tail.Bytes(); len(got) != MaxTail || !bytes.HasSuffix(got, []byte("efend")) || !tail.Dropped() ||
		cap(tail.buf) > longestTail+longestTail/8 {
		t.Errorf("%d bytes in %d, dropped %v", len(got), cap(tail.buf), tail.Dropped())
	}
	r := strings.NewReader(string(long) + "beyond")
	if tail = (Tail{}); tail.Copy(r) != nil || !tail.Dropped() || r.Len() != len("beyond")-1 {
		t.Errorf("dropped %v, %d bytes are not read", tail.Dropped(), r.Len())
	}
}
