package sh

import "testing"

func TestQuoteAndSubstitute(t *testing.T) {
	if got := Quote("it's $HOME"); got != `'it'\''s $HOME'` {
		t.Error(got)
	}
	known := func(name string) (string, bool) { return "/out", name == "OUT" }
	if got := Substitute("$OUT/${OUT}.c ${OUT%.c} $OTHER", known); got != "/out//out.c ${OUT%.c} $OTHER" {
		t.Error(got)
	}
}
