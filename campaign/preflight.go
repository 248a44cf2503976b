package campaign

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/packs"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// Preflight returns the findings of the preflight, the worst first.
func (p *Project) Preflight() []preflight.Finding { return p.findings }

// survey is the preflight of a project: the checks of a plan that need no device and run nothing.
type survey struct {
	*tasks.Facts
	basis string // what, beside files, a plan depends on
}

// run makes the checks, or takes the findings of the last preflight if nothing that they depend on has changed.
func (p *survey) run(ctx context.Context) ([]preflight.Finding, error) {
	p.Refused = tasks.Refusals{}
	if len(p.Spec.Commits) == 0 && len(p.Spec.Benchmarks) == 0 {
		return p.mistakes(), nil
	}
	in, patches := p.preflightInput()
	digest, err := p.preflightDigest(in, patches)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(p.StateDir, "preflight")
	findings, known := readPreflight(file, digest)
	if !known {
		whole := p.historyOf(ctx, in, patches)
		in.FreeDisk = p.freeDisk()
		var broken, mistake error
		in.Models = sync.OnceValue(func() (all []preflight.ModelSpec) {
			var published []packs.Model
			published, mistake = packs.Models()
			for _, m := range published {
				all = append(all, modelOf(m))
			}
			return append(all, p.ownModels()...)
		})
		if findings, broken = preflight.Run(ctx, in, treeReader{p}); broken != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if mistake != nil {
			return nil, mistake
		}
		if whole && broken == nil {
			if err := writePreflight(file, digest, findings); err != nil {
				fmt.Fprintf(p.Progress, "preflight: %v\n", err)
			}
		}
	}
	p.refuse(in, findings)
	return append(p.mistakes(), findings...), nil
}

// keptPreflight is the file in which findings are kept.
type keptPreflight struct {
	Digest   string
	Findings []preflight.Finding
	Skip     []bool // of each finding
}

func readPreflight(file, digest string) ([]preflight.Finding, bool) {
	text, err := cache.ReadOwn(file)
	if err != nil {
		return nil, false
	}
	var kept keptPreflight
	if json.Unmarshal(text, &kept) != nil || kept.Digest != digest || len(kept.Skip) != len(kept.Findings) {
		return nil, false
	}
	for i, skip := range kept.Skip {
		kept.Findings[i].Skip = skip
	}
	return kept.Findings, true
}

func writePreflight(file, digest string, findings []preflight.Finding) error {
	kept := keptPreflight{Digest: digest, Findings: findings, Skip: make([]bool, len(findings))}
	for i, f := range findings {
		kept.Skip[i] = f.Skip
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return fs.Replace(file, text)
}

// preflightDigest stands for all that the findings depend on. What git says of pinned revisions never changes.
func (p *survey) preflightDigest(in *preflight.Input, patches map[string]git.Patching) (string, error) {
	sums := map[string]string{}
	for key, patch := range patches {
		sums[key] = fmt.Sprintf("%x", sha256.Sum256(patch.Text))
	}
	text, err := json.Marshal([]any{p.basis, p.Trees, in, p.ownModels(), sums})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// mistakes are the mistakes of single rows of the file, as findings. They took their rows out already.
func (p *survey) mistakes() []preflight.Finding {
	var list []preflight.Finding
	for _, m := range p.Spec.Mistakes {
		f := preflight.Finding{Check: preflight.Check(cmp.Or(m.Check, string(preflight.Placeholder))), Commit: m.Commit,
			Candidate: m.Candidate, Status: preflight.Fail}
		if d := m.Diagnostic; d != nil {
			f.Evidence, f.Remedy = d.Summary+": "+strings.Join(strings.Fields(d.Detail), " "), "correct the file"
			if d.Subject != nil {
				f.Place = rangeText(*d.Subject)
			}
		}
		list = append(list, f)
	}
	return list
}

func rangeText(r hcl.Range) string {
	if r.Filename == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line)
}

// outcomeOf is what a candidate is counted as that fails a check. Most failures leave it not run: nothing was found out
// about it.
func outcomeOf(f *preflight.Finding) stats.Outcome {
	switch {
	case f.Skip:
		return stats.Skipped
	case f.Check == preflight.Patch || f.Check == preflight.Wheel:
		return stats.BuildFailed
	case f.Check == preflight.Memory:
		return stats.Infeasible
	}
	return stats.NotRun
}

// refuse takes out what fails a check. Of several failures, that one counts which says most of the candidate.
func (p *survey) refuse(in *preflight.Input, findings []preflight.Finding) {
	r := tasks.Refusals{Candidates: map[string]tasks.Absence{}, Benchmarks: map[string]tasks.Absence{}}
	variants := map[string][]string{} // by commit
	for _, c := range in.Candidates {
		variants[c.Commit] = append(variants[c.Commit], c.Key)
	}
	for i := range findings {
		f := &findings[i]
		gap := tasks.Absence{Outcome: outcomeOf(f), Why: fmt.Sprintf("preflight (%s): %s", f.Check, f.Evidence)}
		switch {
		case f.Status != preflight.Fail:
		case f.Benchmark != "":
			note(r.Benchmarks, f.Benchmark, gap)
		case f.Candidate != "":
			note(r.Candidates, f.Candidate, gap)
		default:
			for _, key := range variants[f.Commit] {
				note(r.Candidates, key, gap)
			}
		}
	}
	// Nothing is made for a candidate of which no benchmark can be measured.
	measured := map[string]bool{}
	for i := range in.Benchmarks {
		b := &in.Benchmarks[i]
		_, refused := r.Benchmarks[b.Address]
		measured[b.Candidate] = measured[b.Candidate] || !refused
	}
	for i := range in.Benchmarks {
		if b := &in.Benchmarks[i]; b.Candidate != "" && !measured[b.Candidate] {
			note(r.Candidates, b.Candidate, r.Benchmarks[b.Address])
		}
	}
	p.Refused = r
}

// note keeps the reason that says most.
func note(gaps map[string]tasks.Absence, key string, gap tasks.Absence) {
	order := []stats.Outcome{stats.Skipped, stats.BuildFailed, stats.Infeasible, stats.NotRun}
	if was, known := gaps[key]; !known || slices.Index(order, gap.Outcome) < slices.Index(order, was.Outcome) {
		gaps[key] = gap
	}
}

// largestRead bounds the files of revisions that a preflight looks at.
const largestRead = 4 << 20

// historyOf asks git what the checks need to know beside files: parents, changed paths, and whether patches apply. It
// returns whether git had all the answers.
func (p *survey) historyOf(ctx context.Context, in *preflight.Input, patches map[string]git.Patching) bool {
	whole := true
	for i := range p.Spec.Repos {
		repo := p.Spec.Repos[i].Address
		if err := p.historyIn(ctx, repo, in, patches); err != nil {
			fmt.Fprintf(p.Progress, "preflight: %s: %v\n", repo, err)
			whole = false
		}
	}
	for key := range patches {
		if _, tried := in.Patches[key]; !tried {
			in.Patches[key] = preflight.NotTried + "the repository cannot be read"
		}
	}
	return whole
}

func (p *survey) historyIn(ctx context.Context, repo hclspec.Address, in *preflight.Input,
	patches map[string]git.Patching) error {
	revs := map[string]bool{}
	var commits []*preflight.Commit
	for i := range in.Commits {
		if c := &in.Commits[i]; c.Repo == repo.Name {
			commits = append(commits, c)
			revs[c.Rev] = true
			if c.Parent != "" {
				revs[c.Parent] = true
			}
		}
	}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Repo == repo && s.Out == nil {
			revs[s.Rev] = true
		}
	}
	if len(revs) == 0 {
		return nil
	}
	mirror, err := p.Mirror(ctx, repo)
	if err != nil {
		return err
	}
	end := p.Asker.Watch(p.locationOf(repo), "revisions of "+repo.String())
	_, err = mirror.Resolve(ctx, slices.Sorted(maps.Keys(revs)))
	end()
	if err != nil {
		return err
	}
	list, steps := make([]string, len(commits)), make([]git.Step, len(commits))
	for i, c := range commits {
		list[i], steps[i].To = c.Rev, c.Rev
	}
	parents, err := mirror.Parents(ctx, list)
	if err != nil {
		return err
	}
	changed, err := mirror.Changed(ctx, steps)
	if err != nil {
		return err
	}
	for i, c := range commits {
		c.Known, c.Parents, c.Changed = true, parents[c.Rev], changed[i]
		if c.Parent == "" || c.Parent == c.Rev || len(c.Parents) > 0 && c.Parents[0] == c.Parent {
			continue
		}
		if c.Related, err = mirror.IsAncestor(ctx, c.Parent, c.Rev); err != nil {
			return err
		}
		if c.After, err = mirror.IsAncestor(ctx, c.Rev, c.Parent); err != nil {
			return err
		}
	}
	return p.tryPatches(ctx, mirror, repo, in, patches)
}

// tryPatches tries the patches of a repo's candidates.
func (p *survey) tryPatches(ctx context.Context, mirror *git.Mirror, repo hclspec.Address, in *preflight.Input,
	patches map[string]git.Patching) error {
	var keys []string
	var all []git.Patching
	files := map[string]string{}
	for _, c := range p.Spec.Candidates {
		files[c.Key] = c.Patch
	}
	for _, c := range in.Candidates {
		if one, ok := patches[c.Key]; ok && c.Tree.Repo == repo.Name {
			keys, all = append(keys, c.Key), append(all, one)
		}
	}
	if len(all) == 0 {
		return nil
	}
	answers, err := mirror.CheckPatches(ctx, all)
	if err != nil {
		return err
	}
	for i, key := range keys {
		in.Patches[key] = ""
		if answers[i] != nil {
			in.Patches[key] = fmt.Sprintf("%s does not apply to %s: %v", files[key], short(all[i].Commit), answers[i])
		}
	}
	return nil
}

// treeReader reads files of revisions from the mirrors of a project.
type treeReader struct{ p *survey }

func (r treeReader) mirror(ctx context.Context, repo string) (*git.Mirror, error) {
	return r.p.Mirror(ctx, hclspec.Address{Kind: "repo", Name: repo})
}

// Dirs implements preflight.Reader.
func (r treeReader) Dirs(ctx context.Context, at []preflight.Place) (map[preflight.Place][]preflight.Entry, error) {
	byRepo := map[string][]git.Place{}
	for _, p := range at {
		byRepo[p.Repo] = append(byRepo[p.Repo], git.Place{Commit: p.Rev, Path: p.Path})
	}
	found := map[preflight.Place][]preflight.Entry{}
	for repo, places := range byRepo {
		mirror, err := r.mirror(ctx, repo)
		if err != nil {
			return nil, err
		}
		dirs, err := mirror.Dirs(ctx, places)
		if err != nil {
			return nil, err
		}
		for place, list := range dirs {
			entries := make([]preflight.Entry, len(list))
			for i, e := range list {
				entries[i] = preflight.Entry{Name: e.Name, Dir: e.IsDir(), ID: e.ID}
			}
			found[preflight.Place{Repo: repo, Rev: place.Commit, Path: place.Path}] = entries
		}
	}
	return found, nil
}

// Files implements preflight.Reader.
func (r treeReader) Files(ctx context.Context, repo string, ids []string) (map[string][]byte, error) {
	mirror, err := r.mirror(ctx, repo)
	if err != nil {
		return nil, err
	}
	defer r.p.Asker.Watch(r.p.locationOf(hclspec.Address{Kind: "repo", Name: repo}), "files of repo."+repo)()
	return mirror.Blobs(ctx, ids, largestRead)
}

// locationOf is where a repo is.
func (p *survey) locationOf(repo hclspec.Address) string {
	if r := tasks.RepoOf(p.Spec, repo); r != nil {
		return r.URL + r.Path
	}
	return ""
}

// freeDisk is the room where results are kept, in bytes; 0: not known.
func (p *survey) freeDisk() int64 {
	disk := device.DiskOf(p.StateDir)()
	return disk.Free
}
