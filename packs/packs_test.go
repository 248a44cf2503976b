package packs_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/packs"
)

func rules(t testing.TB) []classify.Rule {
	t.Helper()
	all, err := packs.Rules()
	if err != nil || len(all) < 80 {
		t.Fatal(len(all), err)
	}
	var out []classify.Rule
	for _, f := range all {
		pattern, err := f.Pattern()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, classify.Rule{Rule: f, Pattern: pattern})
	}
	return out
}

// Every rule is complete and has a name of its own, and the file has the layout of fmt.
func TestRulesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	all, err := packs.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if seen[f.Name] || f.Remedy == "" {
			t.Errorf("%s: twice, or without remedy", f.Name)
		}
		seen[f.Name] = true
		if !slices.Contains([]failure.Class{failure.Transient, failure.Permanent, failure.Fixable, failure.Invalid,
			failure.Infra}, f.Class) {
			t.Errorf("%s: class %q", f.Name, f.Class)
		}
		for _, s := range f.Stages {
			if !slices.Contains([]string{"fetch", "build", "start", "run", "stop", "parse", "verify"}, s) {
				t.Errorf("%s: stage %q", f.Name, s)
			}
		}
		if f.Attempts > 0 && f.Class != "transient" && f.Class != "infra" {
			t.Errorf("%s: a %s failure is not tried again", f.Name, f.Class)
		}
		if regexp.MustCompile(f.Match).MatchString("") {
			t.Errorf("%s matches everything", f.Name)
		}
	}
	if err := fs.WalkDir(packs.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		src, err := fs.ReadFile(packs.FS, name)
		if d := cmp.Diff(string(hclwrite.Format(src)), string(src)); d != "" {
			t.Errorf("layout of %s:\n%s", name, d)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Every rule has a line that it explains although all other rules are there, even in its first stage.
func TestEveryRuleExplainsItsLines(t *testing.T) {
	needtest.NoRace(t)
	all := rules(t)
	src, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	unseen := map[string]bool{}
	for _, r := range all {
		unseen[r.Name] = true
	}
	for _, row := range strings.Split(strings.TrimSpace(string(src)), "\n")[1:] {
		name, line, ok := strings.Cut(row, "\t")
		if !ok {
			t.Fatalf("no tab in %q", row)
		}
		first := unseen[name]
		delete(unseen, name)
		i := slices.IndexFunc(all, func(r classify.Rule) bool { return r.Name == name })
		if i < 0 {
			t.Errorf("no rule %s", name)
			continue
		}
		stages := []string{""}
		if first && len(all[i].Stages) > 0 {
			stages = append(stages, all[i].Stages[0])
		}
		for _, stage := range stages {
			m, ok, err := classify.Log(all, stage, strings.NewReader("INFO before\n"+line+"\nINFO after\n"))
			if err != nil || !ok || m.Rule != name || m.Line != 2 {
				t.Errorf("%s in %q: %q is explained by %q (%v, %v)", name, stage, line, m.Rule, ok, err)
			}
		}
	}
	if len(unseen) > 0 {
		t.Errorf("no line for %v", unseen)
	}
}

// Whole logs: several rules match, and the one that names the cause decides. The name of the file begins with that
// rule.
func TestLogs(t *testing.T) {
	all := rules(t)
	logs, err := filepath.Glob("testdata/*.log")
	if err != nil || len(logs) < 8 {
		t.Fatal(logs, err)
	}
	for _, log := range logs {
		f, err := os.Open(log)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want, _, _ := strings.Cut(filepath.Base(log), ".")
		m, ok, err := classify.Log(all, "", f)
		if err != nil || m.Rule != want && (ok || want != "none") {
			t.Errorf("%s: %q, %v: %s", log, m.Rule, err, m.Evidence)
		}
	}
}

// Classifying 10 MB of log with all the rules must stay far below the time of any run.
func BenchmarkClassify(b *testing.B) {
	all := rules(b)
	words := strings.Fields("INFO ERROR worker request 12.5 tok/s loading model weights took GiB " +
		"/usr/lib/python3/dist-packages/torch/x.py line in failed cache build step 404 200 OK module server " +
		"http://127.0.0.1:8000/v1")
	r := rand.New(rand.NewPCG(1, 2))
	var log bytes.Buffer
	for log.Len() < 10<<20 {
		for range 12 {
			log.WriteString(words[r.IntN(len(words))] + " ")
		}
		log.WriteByte('\n')
	}
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		if m, ok, err := classify.Log(all, "", bytes.NewReader(log.Bytes())); ok || err != nil {
			b.Fatal(m, err)
		}
	}
}
