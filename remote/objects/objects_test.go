package objects

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/executor/job"
)

// The names of objects that jobs leave tell their jobs, and no two are alike.
func TestNamesOfObjectsThatJobsLeave(t *testing.T) {
	key, owner, round := cache.Key{1}, "0a0b0c0d", "0011223344556677"
	seen := map[string]bool{}
	for _, of := range []string{JobKey(key, owner, ""), JobKey(key, owner, round)} {
		if !job.IsKey(of) {
			t.Errorf("%s is no key of a job", of)
		}
		for _, end := range []string{Outcome, Result} {
			name := Name(of, end)
			if who, got, which := By(name); who != owner || got != of || which != end || seen[name] {
				t.Errorf("%s is by %s, of job %s, %s", name, who, got, which)
			}
			seen[name] = true
		}
	}
	name := NameOfInput(owner, cache.Entry{Meta: cache.Meta{Key: key, Digest: strings.Repeat("d", 64)}})
	if who, got, end := By(name); who != owner || !strings.HasPrefix(got, key.String()+":") || end != Input {
		t.Errorf("%s is by %s, of job %s, %s", name, who, got, end)
	}
}
