package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The script makes the same history as the bundle, so that people can read the programs that the demo measures.
func TestDemoHistory(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "words.bundle")
	if out, err := exec.Command("sh", "testdata/demo/history", made).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	heads := func(bundle string) string {
		out, err := exec.Command("git", "bundle", "list-heads", bundle).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if want, got := heads(made), heads("demo/words.bundle"); got != want {
		t.Errorf("the bundle has %s, and the script makes %s", got, want)
	}
}
