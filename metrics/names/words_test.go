package names

import "testing"

func TestNearest(t *testing.T) {
	have := []string{"Successful requests", "Output token throughput (tok/s)", "Total Token throughput (tok/s)",
		"Mean TTFT (ms)", "work done", "work done"}
	for want, first := range map[string]string{
		"output_token_throughput": "Output token throughput (tok/s)",
		"token_total_throughput":  "Total Token throughput (tok/s)",
		"ttft_mean":               "Mean TTFT (ms)",
		"wrok_done":               "work done",
		"":                        "",
	} {
		got := Nearest(want, have, 3)
		if len(got) != 3 || first != "" && got[0] != first {
			t.Errorf("%s: %q", want, got)
		}
	}
	if got := Nearest("a", have, 10); len(got) != 5 {
		t.Errorf("%q", got)
	}
	if got := Nearest("a", nil, 3); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
