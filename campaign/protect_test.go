package campaign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/stats"
)

// A patch that changes the program and its measuring files is refused if the file protects these.
func TestAPatchMayNotChangeMeasuringFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		protect string
		want    stats.Outcome
	}{
		"nothing is protected":       {"", stats.Tie},
		"something else is":          {`protect = ["tests/**", "*.py"]`, stats.Tie},
		"the changed file is":        {`protect = ["*.sh"]`, stats.BuildFailed},
		"it is, at whatever a depth": {`protect = ["**/prog.sh"]`, stats.BuildFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t, nil)
			parent := s.commit(map[string]string{"prog.sh": claims(1000), "build.sh": buildScript})
			s.commit(map[string]string{"prog.sh": claims(1100)})
			text := strings.Replace(threeWay, "  optional = true\n", "  optional = true\n  "+tt.protect+"\n", 1)
			s.write("benchmarks.hcl", fmt.Sprintf(text, "HEAD"))
			s.write("patches/c.diff", s.patched(parent, claims(1001)))
			s.apply()
			s.wantOutcomes(map[string]stats.Outcome{"c/human": stats.Win, "c/agent": tt.want})
			for _, row := range s.ledger() {
				if row.Candidate == "c/agent" && tt.want == stats.BuildFailed &&
					!strings.Contains(row.Reason, "protects: prog.sh") {
					t.Errorf("%s", row.Reason)
				}
			}
		})
	}
}

// A revision whose measuring files differ from those of the baseline is refused, too. The baseline itself and other
// files are not.
func TestARevisionMayNotChangeMeasuringFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		changed string
		want    stats.Outcome
	}{
		"a program":     {"prog.sh", stats.Win},
		"what measures": {"bench/run.sh", stats.BuildFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t, nil)
			s.commit(map[string]string{"prog.sh": claims(1000), "bench/run.sh": "true\n", "build.sh": buildScript})
			s.commit(map[string]string{tt.changed: claims(1100)})
			protect := "  protect = [\"bench/**\"]\n}\n"
			text := strings.NewReplacer("each.commit.parent\n}\n", "each.commit.parent\n"+protect,
				`variant "human" { rev = each.commit.rev }`,
				"variant \"human\" {\n  rev = each.commit.rev\n"+protect).Replace(threeWay)
			s.write("benchmarks.hcl", fmt.Sprintf(text, "HEAD"))
			s.apply()
			s.wantOutcomes(map[string]stats.Outcome{"c/human": tt.want, "c/agent": stats.NoPatch})
			for _, row := range s.ledger() {
				if row.Candidate == "c/human" && tt.want == stats.BuildFailed &&
					!strings.Contains(row.Reason, "protects: bench/run.sh") {
					t.Errorf("%s", row.Reason)
				}
			}
		})
	}
}
