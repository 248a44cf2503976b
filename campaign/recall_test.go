package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// changing is a project whose plan depends on everything that a memo must notice; listing adds dependencies on
// listings.
const (
	changing = `
locals { names = toset(split("\n", trimspace(file("names.txt")))) }
task "part" {
  for_each = local.names
  inputs   = ["in/${each.key}.txt"]
  command  = "! grep bad in/${each.key}.txt && cp in/${each.key}.txt $OUT/part"
}
task "whole" {
  data    = { for name in local.names : name => task.part[name] }
  command = "cat ${join(" ", local.names)} > $OUT/whole && ./tool"
}
task "fast" {
  for_each = fileexists("fast") ? toset(["yes"]) : toset([])
  command  = "touch $OUT/${each.key}"
}
`
	listing = `
task "listed" {
  for_each = fileset("in", "*.txt")
  inputs   = ["in/*.txt", "!in/x*"]
  command  = "ls in > $OUT/${each.key}"
}
`
)

// ready is a wheel in the project, in the second of its prebuilt places.
const ready = `
wheel "ready" { prebuilt = ["file:///nowhere/app.whl", "file://%s/app.whl"] }
`

// TestARecalledPlanIsTheWholePlan changes projects in random ways. After each change, a plan with the memo of the plan
// before must equal a plan without a memo. Some changes wait, since files that were changed within the clock's grain
// are checked in another way.
func TestARecalledPlanIsTheWholePlan(t *testing.T) {
	needtest.NoRace(t)
	var stories []*told
	for seed := range uint64(20) {
		text := changing
		if seed%4 == 0 {
			text += listing
		}
		if seed%4 == 1 {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "app.whl"), []byte("ready"), 0o644))
			text += fmt.Sprintf(ready, dir)
		}
		s := tell(t, map[string]string{
			"benchmarks.hcl": text, "names.txt": "a\nb\nc\n", "tool": "#!/bin/sh\n",
			"in/a.txt": "a", "in/b.txt": "b", "in/c.txt": "c", "in/x.txt": "x",
		})
		must(t, os.Chmod(filepath.Join(s.dir, "tool"), 0o755))
		stories = append(stories, &told{story: s, r: rand.New(rand.NewPCG(seed, 1)), change: s.change})
	}
	compareRecalled(t, stories, 100)
}

// TestARecalledPlanOfImagesIsTheWholePlan does the same with images, which are in the engine and not in the store.
func TestARecalledPlanOfImagesIsTheWholePlan(t *testing.T) {
	needtest.NoRace(t)
	var stories []*told
	for seed := range uint64(3) {
		s := picture(t, map[string]string{
			"in/text": "one", "docker/Dockerfile": "FROM scratch\nCOPY . /all\n", "docker/.dockerignore": "notes\n",
			"docker/notes": "1", "docker/sub/text": "one\n",
			"benchmarks.hcl": `
image "WORD" {
  for_each = toset(["a", "b"])
  from     = "BASE"
  fixes    = [fix.it]
}
fix "it" { run = ["echo WORD > /x"] }
image "built_WORD" {
  build { context = "docker" }
  network = true
}
task "inside" {
  image   = image.WORD["a"]
  command = "cat /x > $OUT/x"
}
task "beside" {
  inputs  = ["in/text"]
  command = "cp in/text $OUT/x"
}
`})
		stories = append(stories, &told{story: s.story, r: rand.New(rand.NewPCG(seed, 2)), change: s.change})
	}
	compareRecalled(t, stories, 3)
}

// TestARecalledPlanOfACampaignIsTheWholePlan does the same with a real campaign: a node failed, its dependents are
// blocked, and images have made room for others.
func TestARecalledPlanOfACampaignIsTheWholePlan(t *testing.T) {
	needtest.NoRace(t)
	var stories []*told
	for seed := range uint64(3) {
		s := picture(t, map[string]string{"in/text": "one", "benchmarks.hcl": `
commit "c" {}
variant "base" { baseline = true }
variant "good" {}
variant "bad" {}
image "WORD" {
  for_each = candidates
  from     = "BASE"
  fixes    = [fix.it]
}
fix "it" { run = ["echo WORD > /x"] }
wheel "w" {
  for_each = candidates
  build {
    image   = image.WORD[each.key]
    command = "test ${each.variant.name} != bad && echo 1 > $OUT/x"
  }
}
benchmark "b" {
  for_each = candidates
  data     = { x = wheel.w[each.key] }
  command  = "echo speed: 1"
  design { samples = 2 }
  metrics {
    metric "speed" {
      match  = "speed: ([0-9]+)"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.b] }
task "beside" {
  inputs  = ["in/text"]
  command = "cp in/text $OUT/x"
}
`})
		var away, place string // of a result
		change := func(r *rand.Rand) string {
			switch r.IntN(6) {
			case 4, 5: // as when another project with the same store makes it
				if away != "" {
					must(t, os.MkdirAll(filepath.Dir(place), 0o755))
					must(t, errors.Join(fs.RemoveTree(place), os.Rename(away, place)))
					away = ""
					return "a result is back"
				}
				entries, err := filepath.Glob(filepath.Join(s.dir, ".benchgraph/store/entries/*/*"))
				must(t, err)
				place, away = entries[r.IntN(len(entries))], filepath.Join(t.TempDir(), "away")
				must(t, errors.Join(os.Chmod(place, 0o755), os.Rename(place, away)))
				return "a result is away"
			case 0:
				for _, img := range s.mine() {
					must(t, s.engine.RemoveImage(t.Context(), img.ID))
				}
				return "no image is left"
			case 1:
				s.write("in/text", string("12"[r.IntN(2)]))
				return "new bytes in in/text"
			case 2:
				journal := filepath.Join(s.dir, ".benchgraph/journal")
				must(t, os.WriteFile(journal, nil, 0o644))
				return "the journal is lost"
			}
			return s.harm(r)
		}
		stories = append(stories, &told{story: s.story, r: rand.New(rand.NewPCG(seed, 3)), change: change})
	}
	compareRecalled(t, stories, 3)
}

// change changes the engine, or files that images are made from, and returns a description.
func (i *imaging) change(r *rand.Rand) string {
	switch r.IntN(9) {
	case 0:
		if mine := i.mine(); len(mine) > 0 {
			must(i.t, i.engine.RemoveImage(i.t.Context(), mine[r.IntN(len(mine))].ID))
		}
		return "an image is gone"
	case 1:
		i.write("docker/sub/text", string("12"[r.IntN(2)]))
		return "new bytes in the context"
	case 2:
		i.write(fmt.Sprintf("docker/sub/%d", r.IntN(2)), "new")
		return "a new file in the context"
	case 3:
		_ = os.Remove(filepath.Join(i.dir, "docker/sub/1"))
		return "fewer files in the context"
	case 4:
		i.write("docker/notes", string("12"[r.IntN(2)]))
		return "new bytes in what is ignored"
	case 5:
		i.write("docker/.dockerignore", []string{"notes\n", "sub/1\n"}[r.IntN(2)])
		return "another .dockerignore"
	case 6:
		must(i.t, os.Chmod(filepath.Join(i.dir, "docker/sub/text"), []os.FileMode{0o644, 0o755}[r.IntN(2)]))
		return "chmod in the context"
	case 7:
		i.write("in/text", string("12"[r.IntN(2)]))
		return "new bytes in in/text"
	case 8:
		return i.harm(r)
	}
	return ""
}

// told is a story of changes, with the changes so far.
type told struct {
	*story
	r      *rand.Rand
	change func(r *rand.Rand) string
	text   []string
}

// compareRecalled changes the stories and compares plans. At least so many plans must be recalled ones.
func compareRecalled(t *testing.T, stories []*told, least int) {
	t.Helper()
	recalls := 0
	for round := range 16 {
		if round%4 == 1 {
			time.Sleep(2200 * time.Millisecond)
		}
		for seed, s := range stories {
			what := "an apply"
			if round%4 == 0 {
				s.applied(round)
			} else {
				what = s.change(s.r)
			}
			s.text = append(s.text, what)
			recalled, ok := s.recalled(s.r.IntN(2) == 0)
			if ok {
				recalls++
			}
			whole := s.standing()
			if strings.Contains(recalled, "damaged") { // which is told once
				recalled, whole = reasons.ReplaceAllString(recalled, ""), reasons.ReplaceAllString(whole, "")
			}
			if recalled != whole {
				t.Fatalf("story %d, after %s, the recalled plan (%t) is\n%s\nand the whole plan is\n%s", seed,
					strings.Join(s.text, ", "), ok, recalled, whole)
			}
		}
	}
	if t.Logf("%d plans were recalled", recalls); recalls < least {
		t.Errorf("of %d plans only %d were recalled: little was compared", 16*len(stories), recalls)
	}
}

// change changes the project or its state, and returns a description.
func (s *story) change(r *rand.Rand) string {
	in := "in/" + string("abcx"[r.IntN(4)]) + ".txt"
	path := filepath.Join(s.dir, in)
	switch r.IntN(14) {
	case 0:
		s.write(in, string("bcd"[r.IntN(3)]))
		return "new bytes in " + in
	case 1:
		now := time.Now()
		must(s.t, os.Chtimes(path, now, now))
		return "touch " + in
	case 2:
		must(s.t, os.Chmod(path, []os.FileMode{0o644, 0o755}[r.IntN(2)]))
		return "chmod " + in
	case 3:
		must(s.t, os.RemoveAll(path))
		must(s.t, os.WriteFile(path, []byte("anew"), 0o644))
		return in + " replaced"
	case 4:
		s.write("names.txt", []string{"a\nb\nc\n", "a\nb\n", "b\nx\n"}[r.IntN(3)])
		return "new names"
	case 5:
		s.write("benchmarks.hcl", s.read("benchmarks.hcl")+"# a comment\n")
		return "a comment"
	case 6:
		s.write(fmt.Sprintf("in/%d.txt", r.IntN(2)), "new")
		return "a new file in a listing"
	case 7:
		for i := range 2 {
			_ = os.Remove(filepath.Join(s.dir, fmt.Sprintf("in/%d.txt", i)))
		}
		return "fewer files in a listing"
	case 8:
		s.write("fast", "")
		return "fast is there"
	case 9:
		_ = os.Remove(filepath.Join(s.dir, "fast"))
		return "fast is gone"
	case 10:
		s.write("ls", "a file with the name of a word in a command")
		return "ls is there"
	case 11:
		_ = os.Remove(filepath.Join(s.dir, "ls"))
		return "ls is gone"
	case 12:
		s.write(in, "bad")
		return in + " is bad"
	case 13:
		return s.harm(r)
	}
	return ""
}

// applied applies the project and remembers the plan.
func (s *story) applied(run int) {
	s.memorized(func(ctx context.Context, p *campaign.Project) *engine.Plan {
		applied, err := p.Apply(ctx, campaign.ApplyOptions{RunID: fmt.Sprint(run), Parallelism: 2})
		must(s.t, err)
		return applied.Plan
	})
}

func (s *story) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if !errors.Is(err, os.ErrNotExist) {
		must(s.t, err)
	}
	return string(text)
}

// harm removes or shortens a part of a result.
func (s *story) harm(r *rand.Rand) string {
	var files []string
	_ = filepath.WalkDir(filepath.Join(s.dir, ".benchgraph/store/entries"),
		func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(path, "/out/") {
				files = append(files, path)
			}
			return nil
		})
	if len(files) == 0 {
		return "nothing to harm"
	}
	file := files[r.IntN(len(files))]
	must(s.t, os.Chmod(filepath.Dir(file), 0o755))
	must(s.t, os.Chmod(filepath.Dir(filepath.Dir(file)), 0o755))
	must(s.t, os.Chmod(file, 0o644))
	if r.IntN(2) == 0 {
		must(s.t, os.Remove(file))
		return "a result lost"
	}
	must(s.t, os.WriteFile(file, []byte("something longer than all of them"), 0o644))
	return "a result damaged"
}

// memorized calls a function that plans or applies the recalled project, or the opened one if the memo does not hold,
// and remembers the plan.
func (s *story) memorized(plan func(context.Context, *campaign.Project) *engine.Plan) (recalled bool) {
	diags := s.openAs(func(ctx context.Context, p *campaign.Project) {
		made := plan(ctx, p)
		if text := p.Lock.Bytes(); string(text) != string((&lockfile.Lock{}).Bytes()) &&
			s.read("benchgraph.lock.hcl") != string(text) {
			s.write("benchgraph.lock.hcl", string(text))
		}
		must(s.t, p.Remember(ctx, made))
	}, func(ctx context.Context, c campaign.Config, lock *lockfile.Lock) (*campaign.Project, hcl.Diagnostics) {
		p, known := campaign.Recall(ctx, c, lock, false)
		if recalled = p != nil; recalled {
			return p, nil
		}
		c.Known = known
		return campaign.Open(ctx, c, lock)
	})
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
	return recalled
}

// recalled returns the plan that is made with a memo, if the memo holds. With keep, it remembers the plan.
func (s *story) recalled(keep bool) (text string, recalled bool) {
	memo := filepath.Join(s.dir, ".benchgraph", "memo")
	before, _ := os.ReadFile(memo)
	recalled = s.memorized(func(ctx context.Context, p *campaign.Project) *engine.Plan {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(s.t, err)
		text = lines(plan)
		return plan
	})
	if !keep && before != nil {
		must(s.t, os.WriteFile(memo, before, 0o644))
	}
	return text, recalled
}

// standing returns the plan that is made without a memo.
func (s *story) standing() (text string) {
	diags := s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(s.t, err)
		text = lines(plan)
	})
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
	return text
}

// lines returns a plan as text, each line with its reason at the end.
func lines(p *engine.Plan) string {
	var b strings.Builder
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(&b, "%s %s %s %s", s.Action, s.Key.Short(), s.Node.Address, s.Node.Place)
		for _, dep := range s.Node.Needs {
			b.WriteString(" " + dep.Address)
		}
		if o := s.Node.Origin; o != nil {
			fmt.Fprintf(&b, " %+v", *o)
		}
		fmt.Fprintf(&b, "\t%s\n", s.Reason)
	}
	return b.String()
}

// reasons matches the reasons in a plan's lines.
var reasons = regexp.MustCompile(`\t.*`)

// TestADamagedInputOfARecalledPlanIsMadeAnew has a damaged result that looks whole. The node that reads the result
// finds that out; only this node has changed since the plan was remembered.
func TestADamagedInputOfARecalledPlanIsMadeAnew(t *testing.T) {
	s := tell(t, map[string]string{"part.txt": "part", "whole.txt": "whole", "benchmarks.hcl": `
task "part" {
  inputs  = ["part.txt"]
  command = "cp part.txt $OUT/part"
}
task "whole" {
  inputs  = ["whole.txt"]
  data    = { part = task.part }
  command = "cat part whole.txt > $OUT/whole"
}
`})
	s.applied(1)
	parts, err := filepath.Glob(filepath.Join(s.dir, ".benchgraph/store/entries/*/*/out/part"))
	must(t, err)
	must(t, os.Chmod(parts[0], 0o644))
	must(t, os.WriteFile(parts[0], []byte("bits"), 0o644))
	s.write("whole.txt", "the whole")
	if !s.memorized(func(ctx context.Context, p *campaign.Project) *engine.Plan {
		applied, err := p.Apply(ctx, campaign.ApplyOptions{RunID: "2"})
		must(t, err)
		if applied.Result.Done != 2 || applied.Result.Failed != 0 {
			t.Errorf("%+v", applied.Result)
		}
		return applied.Plan
	}) {
		t.Error("the plan was not recalled")
	}
}
