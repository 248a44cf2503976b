package tasks

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
)

// A secret is found wherever it stands, however the file is read.
func TestSecretsAreFoundAcrossReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[abc]{0,40}`).Draw(t, "text")
		secrets := searchable([]secret{{"ONE", rapid.StringMatching(` ?[ab]{0,4}\n?`).Draw(t, "one")}, {"TWO", rapid.StringMatching(`[bc]{1,6}`).Draw(t, "two")}})
		want := false
		for _, s := range secrets {
			want = want || strings.Contains(text, s.value)
		}
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			if found, err := find(r, secrets); err != nil || (found != nil) != want {
				t.Fatalf("%v, %v; want found = %t", found, err, want)
			}
		}
	})
	const value = "s3cr3t-value"
	for at := 256<<10 - 30; at < 256<<10+30; at++ {
		found, err := find(strings.NewReader(strings.Repeat("-", at)+value), []secret{{"TOKEN", value}, {"LONG", value + value}})
		if err != nil || found == nil || found.name != "TOKEN" {
			t.Fatalf("at %d: %v, %v", at, found, err)
		}
	}
}

func TestAnAddressIsShownWithoutItsPassword(t *testing.T) {
	for address, want := range map[string]string{
		"https://me:s3cr3t@example.org/a b.whl": "https://me:xxxxx@example.org/a%20b.whl", "/a/file": "/a/file", "%zz": "%zz",
	} {
		if got := withoutPassword(address); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for address, want := range map[string]string{
		"https://x/a/$(touch%20x);'%22.whl": "__touch_x____.whl", "https://x/vllm-0.8.2+cu12-cp38.whl?q=1": "vllm-0.8.2+cu12-cp38.whl", "https://x/..": "download",
	} {
		if got := fileName(address); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// No text of an error holds a secret, of whatever kind the error is.
func TestErrorsTellNoSecret(t *testing.T) {
	const value = "s3cr3t-value"
	secrets := []secret{{"TOKEN", value}}
	for _, err := range []error{
		errors.New("open " + value + ": no such file"),
		&engine.Failure{Err: errors.New(value), Failure: cache.Failure{Message: value, Evidence: "a " + value, Remedy: value}},
	} {
		got := conceal(err, secrets)
		if text := got.Error(); strings.Contains(text, value) || !strings.Contains(text, "***") {
			t.Errorf("%q", text)
		}
		if f, ok := errors.AsType[*engine.Failure](got); ok && strings.Contains(f.Remedy, value) {
			t.Errorf("%+v", f)
		}
	}
}
