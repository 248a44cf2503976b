package nearest

import "testing"

// Of two names with the same distance, the one with the longer common beginning is meant, whatever their order.
func TestTheNearestNameBeginsAlike(t *testing.T) {
	t.Parallel()
	known := []string{"app", "cpus", "gpu", "image", "machine", "memory", "time"}
	for given, want := range map[string]string{
		"gpus": "gpu", "cpu": "cpus", "imag": "image", "timer": "time", "quite": "", "ap": "app", "zz": "", "gp": "gpu",
	} {
		if got := Name(given, known); got != want {
			t.Errorf("%q is taken for %q, want %q", given, got, want)
		}
	}
}
