package campaign_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/stats"
)

// simple is a campaign without a repository, whose variants differ by the speed that they print.
func simple(extra string, speeds ...string) string {
	var b strings.Builder
	b.WriteString("commit \"c\" {}\n")
	for i, speed := range speeds {
		name, base := fmt.Sprintf("v%d", i), ""
		if i == 0 {
			name, base = "base", "baseline = true\n"
		}
		fmt.Fprintf(&b, "variant %q {\n%sparams = { prog = %q }\n}\n", name, base, speed)
	}
	b.WriteString(`
wheel "prog" {
  for_each = candidates
  build {
    command = "printf '%s\\n' '#!/bin/sh' \"$PROG\" > $OUT/prog; chmod +x $OUT/prog"
    env     = { PROG = each.variant.params.prog }
  }
  outputs = ["prog"]
}
compare "all" { of = [benchmark.speed] }
`)
	b.WriteString(extra)
	return b.String()
}

const measured = `
benchmark "speed" {
  for_each = candidates
  data     = { "prog" = wheel.prog[each.key] }
  command  = "./prog"
  design {
    samples = 7
  }
  metrics {
    metric "items" {
      match  = "work done: ([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
`

func TestALearntFixIsAppliedToAllVariantsInTheNextWave(t *testing.T) {
	t.Parallel()
	needsKey := "test -f key || { echo 'aimv2 is already used'; exit 1; }; " + claims(1100)
	s := tell(t, map[string]string{"benchmarks.hcl": simple(measured+`
fix "aimv2" {
  description = "puts the key in place"
  detect      = "aimv2 is already used"
  effect      = "neutral"
  caveat      = "the key is a forged one"
  file {
    content = "forged"
    to      = "$SITE/key"
  }
  verify = "grep -q forged key"
}
`, claims(1000), needsKey)})
	applied := s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win})
	if applied.Waves < 2 || applied.Result.Failed != 0 {
		t.Errorf("%d waves, %+v", applied.Waves, applied.Result)
	}
	learnt := s.lock.Fixes["aimv2"]
	if len(learnt) != 1 || learnt[0].Commit != "c" || learnt[0].Evidence != "aimv2 is already used" {
		t.Errorf("the lock says %+v", learnt)
	}
	fixed := map[any]bool{}
	for _, e := range s.events {
		if e.Type == engine.FixApplied {
			fixed[e.Data["fix"]] = true
		}
	}
	if !fixed["aimv2"] {
		t.Error("no fix_applied was told")
	}
	for _, row := range s.ledger() {
		if !slices.ContainsFunc(row.Caveats, func(c stats.Caveat) bool {
			return strings.Contains(c.Text, "forged one")
		}) {
			t.Errorf("%s does not carry the fix's caveat: %q", row.Candidate, row.Caveats)
		}
	}
	if s.apply(); len(s.ran()) > 0 {
		t.Errorf("the second run ran %q", s.ran())
	}
}

func TestATransientFailureVoidsTheBlockAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "flag")
	flaky := fmt.Sprintf("test -f %s || { touch %s; echo 'Broken pipe'; exit 1; }; %s", flag, flag, claims(1100))
	s := tell(t, map[string]string{"benchmarks.hcl": unguarded + simple(measured+`
failure "broken_pipe" {
  match = "Broken pipe"
  class = "transient"
  retry {
    attempts = 3
    backoff  = "10ms"
  }
}
`, claims(1000), flaky)})
	s.apply()
	// One of eight lifecycles was lost, all by one side: the next look outweighs that.
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win})
	row := s.ledger()[0]
	want := []stats.Cause{{Variant: "v1", Class: "transient", Rule: "broken_pipe", Count: 1}}
	if a := row.Attempts; a.Valid != 9 || a.Voided != 1 || a.Retried != 1 || !slices.Equal(a.Causes, want) {
		t.Errorf("%+v: %s", a, row.Reason)
	}
	var voided, retried int
	for _, e := range s.events {
		if e.Type == engine.SampleInvalid {
			voided++
		}
		if e.Type == engine.NodeFailed && e.Retrying {
			retried++
		}
	}
	if voided != 1 || retried != 1 {
		t.Errorf("%d samples were invalid and %d attempts tried again, want 1 and 1", voided, retried)
	}
}

func TestDifferentMethodologiesAreNotCompared(t *testing.T) {
	t.Parallel()
	differs := strings.Replace(measured, `"./prog"`, `"./prog # ${each.variant.name}"`, 1)
	s := tell(t, map[string]string{"benchmarks.hcl": simple(differs, claims(1000), claims(1100))})
	s.open(func(ctx context.Context, p *campaign.Project) {
		_, err := p.Plan(ctx, campaign.PlanOptions{})
		if err == nil {
			err = p.Unlike(campaign.PlanOptions{})
		}
		refused, ok := errors.AsType[*stats.RefusedError](err)
		for _, want := range []string{"c/v1: command", "./prog # v1", "./prog # base", "variant.v1, benchmarks.hcl:",
			"variant.base, benchmarks.hcl:", "artefact = true"} {
			if !ok || !strings.Contains(refused.Error(), want) {
				t.Errorf("nothing is to be measured in vain: %v lacks %q", err, want)
			}
		}
	})
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.NotComparable})
	if row := s.ledger()[0]; !strings.Contains(row.Reason, "command") || row.Effect != 0 {
		t.Errorf("the refusal is %q with effect %v", row.Reason, row.Effect)
	}
}

func TestOpenVerdictsGetMoreBlocks(t *testing.T) {
	t.Parallel()
	// The candidate is now as fast, now faster: no look gives a verdict.
	swings := func(run int) executortest.FakeRun { return speed([]float64{1000, 1080}[run%2])(run) }
	adaptive := strings.Replace(threeOnAMachine, "design { samples = 4 }", "design {\n samples = 4\n max = 8\n }", 1)
	s, m := onMachine(t, adaptive, map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": swings,
		"two": speed(1000)})
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Inconclusive, "c/two": stats.Tie})
	if m.ran("one") != 8 {
		t.Errorf("%d blocks", m.ran("one"))
	}
	if s.apply(); len(s.ran()) > 0 {
		t.Errorf("the second run ran %q", s.ran())
	}
}

// The candidate is now much faster, now much slower: eight blocks would not give a verdict, so only the four of the
// first look are measured.
func TestAHopelessVerdictGetsNoMoreBlocks(t *testing.T) {
	t.Parallel()
	swings := func(run int) executortest.FakeRun { return speed([]float64{700, 1400}[run%2])(run) }
	adaptive := strings.Replace(threeOnAMachine, "design { samples = 4 }", "design { looks = [4, 6, 8] }", 1)
	s, m := onMachine(t, adaptive, map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": swings,
		"two": speed(1000)})
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Inconclusive, "c/two": stats.Tie})
	if row := s.ledger()[0]; m.ran("one") != 4 || !strings.Contains(row.Reason, "stopped after 4 of at most 8 blocks") {
		t.Errorf("%d blocks: %s", m.ran("one"), row.Reason)
	}
}

func TestIndependentSamplesGiveNumbersAndNoVerdict(t *testing.T) {
	t.Parallel()
	independent := strings.Replace(measured, "samples = 7", "samples = 4\n pairing = \"independent\"", 1)
	s := tell(t, map[string]string{"benchmarks.hcl": simple(independent, claims(1000), claims(1100))})
	s.apply()
	row := s.ledger()[0]
	if row.Outcome != stats.Inconclusive || !strings.Contains(row.Reason, "no verdict") || row.Effect < 0.09 {
		t.Errorf("%s, effect %v: %s", row.Outcome, row.Effect, row.Reason)
	}
}

func TestAServerLivesForOneSample(t *testing.T) {
	t.Parallel()
	served := `
benchmark "speed" {
  for_each = candidates
  data     = { "prog" = wheel.prog[each.key] }
  server {
    command = "mkdir www; ./prog > www/speed; cd www; echo starting; exec python3 -u -m http.server --bind 127.0.0.1 $PORT"
    ready {
      http    = "/speed"
      timeout = "20s"
    }
  }
  command = "python3 -c 'import sys, urllib.request as r; print(r.urlopen(\"http://127.0.0.1:\" + sys.argv[1] + \"/speed\").read().decode())' $PORT"
  design { samples = 4 }
  metrics {
    metric "items" {
      match  = "work done: ([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
`
	s := tell(t, map[string]string{"benchmarks.hcl": simple(served, claims(1000), claims(1100),
		"echo 'boom: no engine' >&2; exit 3")})
	s.apply()
	got := s.outcomes()
	if got["c/v1"] != stats.Win || got["c/v2"] != stats.Failed {
		s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win, "c/v2": stats.Failed})
	}
}

func TestASecretIsGivenAndNeverTold(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"benchmarks.hcl": `
task "login" {
  secrets = ["TOKEN"]
  command = "test $${#TOKEN} = 12 && echo token is $TOKEN && echo $TOKEN >&2 && echo fine > $OUT/done"
  outputs = ["done"]
}
`})
	applied := s.apply()
	if applied.Result.Failed != 1 {
		t.Fatalf("without the secret: %+v", applied.Result)
	}
	s.secrets["TOKEN"] = "s3cr3t-value"
	if applied = s.apply(); applied.Result.Done != 1 {
		t.Fatalf("with the secret: %+v", applied.Result)
	}
	s.secrets["TOKEN"] = "s3cr3t-value" // another value is not another result
	err := filepath.WalkDir(filepath.Join(s.dir, ".benchgraph"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("s3cr3t-value")) {
			t.Errorf("%s tells the secret", path)
		}
		return err
	})
	must(t, err)
}

func TestAnOverlayIsNotCompiledAgain(t *testing.T) {
	t.Parallel()
	s := tell(t, nil)
	s.commit(map[string]string{"pkg/a.py": "one\n", "pkg/core.c": "int x;\n", "setup.sh": "#!"})
	s.commit(map[string]string{"pkg/a.py": "two\n", "pkg/b.py": "new\n"})
	s.commit(map[string]string{"pkg/core.c": "int y;\n"})
	s.write("benchmarks.hcl", `
repo "r" { path = "repo" }
commit "python" { rev = "HEAD~1" }
commit "native" { rev = "HEAD" }
variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" { rev = each.commit.rev }
wheel "pkg" {
  for_each = candidates
  source   = each.source
  overlay  = ["pkg/**/*.py"]
  build { command = "python3 -c \"import zipfile; z = zipfile.ZipFile('$OUT/pkg-1-py3-none-any.whl', 'w'); z.writestr('pkg/core.so', open('pkg/core.c').read()); z.writestr('pkg/a.py', open('pkg/a.py').read()); z.writestr('pkg-1.dist-info/RECORD', '')\"" }
  outputs = ["*.whl"]
}
`)
	s.apply()
	var built []string
	for _, address := range s.ran() {
		if strings.HasPrefix(address, "build.") {
			built = append(built, address)
		}
	}
	if len(built) != 2 {
		t.Errorf("four candidates were compiled %d times, want 2: %q", len(built), built)
	}
	s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(t, err)
		for address, want := range map[string]string{`wheel.pkg["python/baseline"]`: "one\n",
			`wheel.pkg["python/human"]`: "two\n"} {
			step, _ := plan.Step(address)
			end, err := plan.End(ctx, p.Store, step)
			must(t, err)
			if got := unzip(t, end.Entry, "pkg/a.py"); got != want {
				t.Errorf("%s holds %q, want %q", address, got, want)
			}
		}
	})
}

// The candidates of a commit share a build, which one of them makes. A candidate whose patch is refused must not fail
// the others.
func TestARefusedPatchFailsNoSharedBuild(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{
		"bad.diff": "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-nobody has this\n+two\n",
	})
	s.commit(map[string]string{"pkg/a.py": "one\n", "make.sh": "#!"})
	s.commit(map[string]string{"pkg/a.py": "two\n"})
	s.write("benchmarks.hcl", `
repo "r" { path = "repo" }
commit "c" { rev = "HEAD" }
variant "agent" {
  rev   = each.commit.parent
  patch = "bad.diff"
}
variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" { rev = each.commit.rev }
wheel "pkg" {
  for_each = candidates
  source   = each.source
  overlay  = ["pkg/**/*.py"]
  build { command = "mkdir $OUT/pkg && cp pkg/a.py $OUT/pkg" }
}
`)
	s.apply()
	s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(t, err)
		for candidate, want := range map[string]bool{"agent": false, "baseline": true, "human": true} {
			step, _ := plan.Step(`wheel.pkg["c/` + candidate + `"]`)
			if _, made := step.Stored(); made != want {
				t.Errorf("%s: made %v, want %v: %s", candidate, made, want, step.Reason)
			}
		}
	})
}

func unzip(t testing.TB, e cache.Entry, name string) string {
	t.Helper()
	for _, f := range e.Files {
		if !strings.HasSuffix(f.Path, ".whl") {
			continue
		}
		z, err := zip.OpenReader(filepath.Join(e.Dir, f.Path))
		must(t, err)
		defer z.Close()
		text, err := fs.ReadFile(z, name)
		must(t, err)
		return string(text)
	}
	t.Fatal("no wheel in the entry")
	return ""
}

func TestAPrebuiltWheelServesAndIsPinned(t *testing.T) {
	t.Parallel()
	var heads atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			heads.Add(1)
		}
		if !strings.Contains(r.URL.Path, "have") {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "a prebuilt wheel")
	}))
	defer server.Close()
	s := tell(t, map[string]string{"benchmarks.hcl": fmt.Sprintf(`
wheel "w" {
  for_each = toset(["have", "lack"])
  prebuilt = ["%s/first/x", "%s/${each.key}/w.whl"]
  build { command = "echo built > $OUT/w.whl" }
  outputs = ["*.whl"]
}
`, server.URL, server.URL)})
	if applied := s.apply(); applied.Result.Done != 2 {
		t.Fatalf("%+v", applied.Result)
	}
	if got := s.lock.Wheels["w"]["have"]; got != server.URL+"/have/w.whl" {
		t.Errorf("the lock pins %q", got)
	}
	asked := heads.Load()
	if s.apply(); len(s.ran()) > 0 || heads.Load() != asked {
		t.Errorf("the second run ran %q and asked %d times", s.ran(), heads.Load()-asked)
	}
}

func TestAKnownIssueIsProbedBeforeAnythingIsSpent(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"benchmarks.hcl": simple(measured+`
known_issue "present" {
  for_each = candidates
  when     = each.variant.name == "v1"
  probe    = "echo the port is taken; exit 1"
  reason   = "port binding"
}
known_issue "gone" {
  for_each = candidates
  when     = each.variant.name == "v2"
  probe    = "true"
  reason   = "was mended meanwhile"
}
`, claims(1000), claims(1100), claims(1200))})
	applied := s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Skipped, "c/v2": stats.Win})
	if applied.Result.Failed != 0 {
		t.Errorf("a known issue counts as a failure: %+v", applied.Result)
	}
}

func TestNodesThatCannotRunHereSaySoAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"benchmarks.hcl": simple(`
image "runtime" { from = "example.org/image:1" }
benchmark "speed" {
  for_each = candidates
  gpus {
    count  = 1
    memory = "80GiB"
  }
  command = "true"
  metrics { 
    metric "x" { match = "x ([0-9]+)" }
  }
}
benchmark "contained" {
  for_each = candidates
  image    = image.runtime
  command  = "true"
  metrics { 
    metric "x" { match = "x ([0-9]+)" }
  }
}
task "other" { command = "echo ok > $OUT/ok" }
`, "true", "true # other")})
	applied := s.apply()
	if applied.Result.Failed != 0 || !slices.Contains(s.ran(), "task.other") {
		t.Errorf("%+v ran %q", applied.Result, s.ran())
	}
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Infeasible})
}

// A command that succeeds without its metric may have printed why.
func TestSuccessWithoutTheMetricIsExcusedByWhatTheOutputSays(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "flag")
	flaky := fmt.Sprintf("test -f %s || { touch %s; echo 'Broken pipe' >&2; exit 0; }; %s", flag, flag, claims(1100))
	s := tell(t, map[string]string{"benchmarks.hcl": unguarded + simple(measured+`
failure "broken_pipe" {
  match = "Broken pipe"
  class = "transient"
  retry {
    attempts = 2
    backoff  = "10ms"
  }
}
`, claims(1000), flaky)})
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Win})
}
