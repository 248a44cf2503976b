// Package needtest skips tests that need something that a machine may lack. In CI such a test fails, since nothing
// may be missing there.
package needtest

import (
	"os"
	"os/exec"
	"testing"
)

// Missing skips a test because this machine lacks something. In CI, the test fails.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// NoRace skips a test under the race detector. It is for tests with one goroutine that computes for long: the
// detector makes them ten times slower, and can find nothing.
func NoRace(t testing.TB) {
	t.Helper()
	if UnderRace {
		t.Skip("one goroutine computes, ten times slower with the race detector; make faults runs this test without it")
	}
}

// Chromium returns the path of a Chromium browser.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-headless-shell", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, "no chromium (apt-get install chromium)")
	return ""
}
