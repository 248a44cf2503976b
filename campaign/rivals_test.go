package campaign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/stats"
)

// deep leaves a directory whose path below $OUT has so many bytes.
func deep(bytes string) string {
	return "(cd $OUT; n=" + bytes + `; while [ $n -gt 0 ]; do k=$((n > 201 ? 200 : n)); d=$(printf %0"$k"d 0); ` +
		"mkdir $d; cd -P $d; n=$((n - k - 1)); done)\n"
}

// many leaves so many empty files below directories with long names.
func many(files int) string {
	return fmt.Sprintf("(cd $OUT; for i in $(seq 13); do d=$(printf %%0250d 0); mkdir $d; cd -P $d; done; "+
		"i=0; while [ $i -lt %d ]; do : > $i; i=$((i + 1)); done)\n", files)
}

// Whatever a candidate leaves behind, its rivals get their verdicts.
func TestLeftFilesHurtNoRival(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		attack, extra string
		want          stats.Outcome
	}{
		"much of what each may write":     {"head -c 6000000 /dev/zero > $OUT/much\n", `disk = "8MB"`, stats.Win},
		"much where it runs":              {"head -c 6000000 /dev/zero > much\n", `disk = "8MB"`, stats.Win},
		"more than each may write":        {"head -c 9000000 /dev/zero > $OUT/much\n", `disk = "8MB"`, stats.Failed},
		"names that are listed":           {many(100), "", stats.Win},
		"names that take too much":        {many(22000), "", stats.Failed},
		"a path that is too long":         {deep("3600"), "", stats.Failed},
		"a path that fits without it":     {deep("3495"), "", stats.Failed},
		"a path that fits as it is":       {deep("3490"), "", stats.Win},
		"a path that fits without passes": {deep("3490"), "repeat", stats.Failed},
		"no $OUT before another pass":     {"rm -r $OUT\n", "repeat", stats.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(measured, "samples = 7", "looks = [4]", 1)
			if story.extra == "repeat" {
				text = strings.Replace(text, "looks = [4]", "looks = [4]\n    repeat = 2", 1)
			} else {
				text = strings.Replace(text, "  design {", "  "+story.extra+"\n  design {", 1)
			}
			writes := "head -c 4000000 /dev/zero > $OUT/mine; "
			s := tell(t, map[string]string{"benchmarks.hcl": unguarded + simple(text, writes+claims(1000),
				writes+claims(1200), strings.ReplaceAll(story.attack, "\n", "; ")+claims(1300))})
			s.apply()
			s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win, "c/v2": story.want})
		})
	}
}
