package campaign_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/stats"
)

// prompts gives each variant its own result of a task, as data.
const prompts = `
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
task "prompts" {
  for_each = candidates
  %s
  command  = "echo %s > $OUT/prompts"
}
benchmark "speed" {
  for_each = candidates
  data     = { "prompts" = task.prompts[each.key] }
  command  = "echo $(cat prompts)$(date +%%N | cut -c1) items/s"
  design { samples = 4 }
  metrics {
    metric "items" {
      match  = "([0-9.]+) items/s"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.speed] }
`

// Data that differs between variants is an artefact only if the file says so: otherwise the plan refuses the data
// before anything is paid for.
func TestOnlyArtefactsMayDiffer(t *testing.T) {
	t.Parallel()
	own := "${each.variant.name == \"one\" ? 110 : 100}."
	plan := func(text string, allow ...string) error {
		s := tell(t, map[string]string{"benchmarks.hcl": text})
		s.allow = allow
		var err error
		s.open(func(ctx context.Context, p *campaign.Project) {
			if _, err = p.Plan(ctx, campaign.PlanOptions{}); err == nil {
				err = p.Unlike(campaign.PlanOptions{})
			}
		})
		return err
	}
	err := plan(fmt.Sprintf(prompts, "", own))
	if err == nil || !strings.Contains(err.Error(), "data prompts is") ||
		!strings.Contains(err.Error(), "benchmarks.hcl:3") || !strings.Contains(err.Error(), "benchmarks.hcl:4") {
		t.Errorf("%v", err)
	}
	if err := plan(fmt.Sprintf(prompts, "artefact = true", own)); err != nil {
		t.Errorf("a declared artefact: %v", err)
	}
	if err := plan(fmt.Sprintf(prompts, "", "100.")); err != nil {
		t.Errorf("the same work for both: %v", err)
	}
	if err := plan(fmt.Sprintf(prompts, "", own), "data prompts"); err != nil {
		t.Errorf("allowed: %v", err)
	}
	// A mismatch that is let through is labelled, also by an apply that has nothing to do.
	s := tell(t, map[string]string{"benchmarks.hcl": fmt.Sprintf(prompts, "", own)})
	s.allow = []string{"data"}
	for range 2 {
		s.apply()
		for _, row := range s.ledger() {
			if row.Outcome != stats.Win || !strings.Contains(fmt.Sprint(row.Caveats),
				"in spite of a different data prompts") {
				t.Errorf("%s: %s: %v", row.Outcome, row.Reason, row.Caveats)
			}
		}
	}
}

// A known issue that is declared after measuring has the same outcome as one declared before, and costs no block.
func TestAKnownIssueThatIsDeclaredLater(t *testing.T) {
	t.Parallel()
	for variant, want := range map[string]map[string]stats.Outcome{
		"v1":   {"c/v1": stats.Skipped, "c/v2": stats.Win},
		"base": {"c/v1": stats.NoBaseline, "c/v2": stats.NoBaseline},
	} {
		issue := `
known_issue "present" {
  for_each = candidates
  when     = each.variant.name == "` + variant + `"
  probe    = "echo the port is taken; exit 1"
  reason   = "port binding"
}
`
		scripts := []string{claims(1000), claims(1100), claims(1200)}
		s := tell(t, map[string]string{"benchmarks.hcl": simple(measured, scripts...)})
		s.apply()
		s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win, "c/v2": stats.Win})
		s.write("benchmarks.hcl", simple(measured+issue, scripts...))
		s.apply()
		s.wantOutcomes(want)
		for _, address := range s.ran() {
			if strings.HasPrefix(address, "trial.") {
				t.Errorf("%s was run again", address)
			}
		}
		if s.apply(); len(s.ran()) > 0 {
			t.Errorf("the next run ran %q", s.ran())
		}
		fresh := tell(t, map[string]string{"benchmarks.hcl": simple(measured+issue, scripts...)})
		fresh.apply()
		fresh.wantOutcomes(want)
		s.write("benchmarks.hcl", simple(measured, scripts...))
		s.apply()
		s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win, "c/v2": stats.Win})
	}
}
