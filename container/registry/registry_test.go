package registry

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "99999": MaxAfter, "-1": 0, "x": 0, "99999999999999999999": 0,
		time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"): MaxAfter,
		"Mon, 02 Jan 2006 15:04:05 GMT":                                         0,
	} {
		if got := retryAfter(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
