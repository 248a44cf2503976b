package declared

import (
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/hclspec"
)

// Timeouts returns the sum of the timeouts of all commands of a benchmark's node; 0 if a command has none.
func Timeouts(spec *hclspec.Spec, address string) (all time.Duration) {
	at, err := hclspec.ParseAddress(address)
	if err != nil || spec == nil {
		return 0
	}
	owner := at.Key // commit or candidate
	if at.Kind == "trial" {
		owner, _ = at.Trial()
	}
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		commit, _, _ := strings.Cut(b.Candidate, "/")
		if b.Address.Name != at.Name || b.Out != nil || owner != commit && owner != b.Address.Key {
			continue
		}
		if b.Timeout == 0 {
			return 0
		}
		all += b.Timeout * time.Duration(b.Design.Warmup+b.Design.Passes())
		if b.Server != nil {
			all += b.Server.Timeout
		}
		if b.Check != nil {
			all += b.Check.Timeout
		}
		if b.Canary != nil {
			all += 2 * b.Canary.Timeout
		}
	}
	return all
}
