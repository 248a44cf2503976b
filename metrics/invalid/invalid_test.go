package invalid

import (
	"testing"

	"github.com/benchgraph/benchgraph/metrics/jsondoc"
)

// Documents whose numbers are read by path report failed requests, too.
func TestPartly(t *testing.T) {
	for text, want := range map[string]string{
		`{"load_summary": {"count": 60}, "successes": {"count": 10}, "failures": {"count": 50}}`: RequestsFailed,
		`{"load_summary": {"count": 60}, "successes": {"count": 0}, "failures": {"count": 60}}`:  NoneSucceeded,
		`{"load_summary": {"count": 60}, "successes": {"count": 60}, "failures": {"count": 0}}`:  "",
		`{"results_num_completed_requests": 147, "results_number_errors": 3}`:                    RequestsFailed,
		`{"results_num_completed_requests": 147, "results_number_errors": "no"}`:                 "",
		`{"successes": {"count": 10}, "failures": {"count": 50}}`:                                "",
		`[{"a": 1}]`: "",
	} {
		document, _ := jsondoc.Last([]byte(text))
		got := ""
		if m := Partly(document); m != nil {
			got = m.Rule
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if Partly(nil) != nil {
		t.Error("no document")
	}
}
