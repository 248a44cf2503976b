package campaign_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

// withCanary is a campaign whose canary prints the next of the given numbers each time it runs.
func withCanary(t *testing.T, blocks int, numbers ...string) *story {
	s := tell(t, map[string]string{"numbers": strings.Join(numbers, "\n") + "\n", "runs": "1"})
	command := fmt.Sprintf("cd %s; n=$(cat runs); echo $((n + 1)) > runs; sed -n $${n}p numbers; date > $OUT/when",
		s.dir)
	s.write("benchmarks.hcl", unguarded+simple(strings.NewReplacer("samples = 7",
		fmt.Sprintf("samples = %d", blocks), "  design {", `
  quiet = true
  canary {
    command = "`+command+`"
    match   = "moved ([0-9.]+) GB/s"
    unit    = "GB/s"
  }
  design {`).Replace(measured), claims(1000), claims(1100)))
	return s
}

// times is a number that a canary prints n times.
func times(n int, number string) []string { return slices.Repeat([]string{number}, n) }

// voids returns the failures of blocks, in the order of their events.
func (s *story) voids() []failure.Failure {
	var found []failure.Failure
	for _, e := range s.events {
		if e.Type == engine.SampleInvalid {
			found = append(found, *e.Failure)
		}
	}
	return found
}

func TestABlockCountsWhenItsCanaryIsAsFastAsBefore(t *testing.T) {
	t.Parallel()
	s := withCanary(t, 7, slices.Concat(
		[]string{"moved 100 GB/s", "moved 102 GB/s", "moved 101 GB/s"},
		// the machine gets slower during the second block
		[]string{"moved 100 GB/s", "moved 101 GB/s", "moved 90 GB/s"},
		[]string{"moved 100 GB/s", "moved 90 GB/s"}, // and now sooner
		[]string{"moved 99 GB/s", "moved 99 GB/s", "moved 101 GB/s"},
		[]string{"moved 98 GB/s", "moved 100 GB/s", "moved 100 GB/s"},
		[]string{"moved 130 GB/s"}, // when three count, it is faster from the beginning
		times(12, "moved 102 GB/s"))...)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win})
	want := []string{
		"100 GB/s before the block and 90 GB/s after it (-10.0 %)",
		"100 GB/s before the block and 90 GB/s before v1 (-10.0 %)",
		"130 GB/s, and 100 GB/s is usual here, the median of 3 blocks (+30.0 %)",
	}
	voids := s.voids()
	if len(voids) != len(want) {
		t.Fatalf("void were %+v", voids)
	}
	for i, f := range voids {
		if f.Class != failure.Infra || f.Rule != "canary" ||
			strings.Replace(f.Evidence, "before base", "before v1", 1) != want[i] || f.Remedy == "" || f.Subject != "" {
			t.Errorf("a block is void for %+v, want %s", f, want[i])
		}
	}

	// The stored results tell the usual speed in the next process, too.
	s.write("benchmarks.hcl", strings.Replace(s.read("benchmarks.hcl"), "samples = 7", "samples = 8", 1))
	s.write("numbers", "moved 80 GB/s\nmoved 102 GB/s\nmoved 103 GB/s\nmoved 103 GB/s\n")
	s.write("runs", "1")
	s.apply()
	if voids := s.voids(); len(voids) != 1 ||
		voids[0].Evidence != "80 GB/s, and 102 GB/s is usual here, the median of 7 blocks (-21.6 %)" {
		t.Errorf("of the eighth block was told %+v", voids)
	}
	if ran := s.ran(); ran[len(ran)-1] != `trial.speed["c#8"]` {
		t.Errorf("ran %q", ran)
	}
	if s.apply(); len(s.ran()) > 0 {
		t.Errorf("ran again: %q", s.ran())
	}
}

func TestACanaryThatFailsIsNobodysFault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ prints, message string }{
		"fails":  {"", "nothing was measured: the canary failed: run: exit status 3"},
		"silent": {"moved nothing", "nothing was measured: the canary ran, but its number is not in the output"},
		"zero":   {"moved 0 GB/s", "nothing was measured: the canary ran, but its number is 0, and must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withCanary(t, 2, times(20, test.prints)...)
			if test.prints == "" {
				text := s.read("benchmarks.hcl")
				s.write("benchmarks.hcl", strings.Replace(text, "date > $OUT/when", "exit 3", 1))
			}
			s.apply()
			s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Infra})
			voids := s.voids()
			if len(voids) != 1 {
				t.Errorf("the canary was tried %d times: nothing changes by another attempt", len(voids))
			}
			f := voids[0]
			if f.Class != failure.Infra || f.Rule != "canary_failed" || f.Message != test.message || f.Remedy == "" {
				t.Errorf("told was %+v", f)
			}
		})
	}
}
