package workdir

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// A secret is found anywhere in a file, however the file is read.
func TestSecretsAreFoundAcrossReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[abc]{0,40}`).Draw(t, "text")
		secrets := searchable(Secrets{{"ONE", rapid.StringMatching(` ?[ab]{0,4}\n?`).Draw(t, "one")},
			{"TWO", rapid.StringMatching(`[bc]{1,6}`).Draw(t, "two")}})
		want := false
		for _, s := range secrets {
			want = want || strings.Contains(text, s.Value)
		}
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)),
			iotest.DataErrReader(strings.NewReader(text))} {
			if found, err := find(r, secrets); err != nil || (found != nil) != want {
				t.Fatalf("%v, %v; want found = %t", found, err, want)
			}
		}
	})
	const value = "s3cr3t-value"
	for at := 256<<10 - 30; at < 256<<10+30; at++ {
		found, err := find(strings.NewReader(strings.Repeat("-", at)+value),
			Secrets{{"TOKEN", value}, {"LONG", value + value}})
		if err != nil || found == nil || found.Name != "TOKEN" {
			t.Fatalf("at %d: %v, %v", at, found, err)
		}
	}
}

// The text of an error contains no secret, whatever the type of the error.
func TestErrorsTellNoSecret(t *testing.T) {
	const value = "s3cr3t-value"
	secrets := Secrets{{"TOKEN", value}}
	for _, err := range []error{
		errors.New("open " + value + ": no such file"),
		&engine.Failure{Err: errors.New(value), Failure: failure.Failure{Message: value, Evidence: "a " + value,
			Remedy: value}},
	} {
		got := secrets.Conceal(err)
		if text := got.Error(); strings.Contains(text, value) || !strings.Contains(text, "***") {
			t.Errorf("%q", text)
		}
		if f, ok := errors.AsType[*engine.Failure](got); ok && strings.Contains(f.Remedy, value) {
			t.Errorf("%+v", f)
		}
	}
}
