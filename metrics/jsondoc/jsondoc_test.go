package jsondoc

import (
	"fmt"
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
