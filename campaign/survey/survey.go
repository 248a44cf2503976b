// Package survey gathers the facts that a preflight checks from a project's files and from git, and runs the preflight.
// A candidate that fails a check leaves the graph with the reason. Findings are kept until something that they depend
// on changes.
package survey

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/packs"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/preflight/requirement"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// A survey is the preflight of a project.
type survey struct {
	*tasks.Facts
	basis string // all that a plan depends on, beside files
}

// Run checks a project, or returns the findings of its last preflight if nothing that they depend on has changed:
// neither files nor basis. It returns the findings, the worst first, and notes in the facts which candidates and
// benchmarks are refused. Text for people goes to Progress of the facts. The error is that of the context, of the
// packs, or of data that has no JSON.
func Run(ctx context.Context, f *tasks.Facts, basis string) ([]preflight.Finding, error) {
	p := &survey{f, basis}
	p.Refused, p.Lost = tasks.Refusals{}, map[string]string{}
	if len(p.Spec.Commits) == 0 && len(p.Spec.Benchmarks) == 0 {
		return p.mistakes(), nil
	}
	in, patches := p.input(ctx)
	digest, err := p.digest(in, patches)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(p.StateDir, "preflight")
	findings, known := readKept(file, digest)
	if !known {
		whole := p.historyOf(ctx, in, patches)
		in.FreeDisk = device.DiskOf(p.StateDir)().Free
		var broken, mistake error
		in.Models = sync.OnceValue(func() (all []requirement.Model) {
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
			if err := keep(file, digest, findings); err != nil {
				fmt.Fprintf(p.Progress, "preflight: %v\n", err)
			}
		}
	}
	p.refuse(in, findings)
	return p.about(append(p.mistakes(), findings...)), nil
}

// about leaves out the findings about what a try does not measure: nothing of it is wrong with the try.
func (p *survey) about(list []preflight.Finding) []preflight.Finding {
	return slices.DeleteFunc(list, func(f preflight.Finding) bool {
		return f.Commit != "" && !p.tries(f.Commit, f.Candidate)
	})
}

// tries reports whether a commit is measured, in a candidate unless its key is empty. Without a try, all are.
func (p *survey) tries(commit, candidate string) bool {
	return p.Spec.Try == nil || commit == p.Spec.Try.Commit && (candidate == "" ||
		slices.ContainsFunc(p.Spec.Benchmarks, func(b hclspec.Benchmark) bool { return b.Candidate == candidate }))
}

// keptFindings is the content of the file that keeps findings.
type keptFindings struct {
	Digest   string
	Findings []preflight.Finding
	Skip     []bool // by finding
}

func readKept(file, digest string) ([]preflight.Finding, bool) {
	text, err := fs.ReadOwn(file)
	if err != nil {
		return nil, false
	}
	var kept keptFindings
	if json.Unmarshal(text, &kept) != nil || kept.Digest != digest || len(kept.Skip) != len(kept.Findings) {
		return nil, false
	}
	for i, skip := range kept.Skip {
		kept.Findings[i].Skip = skip
	}
	return kept.Findings, true
}

func keep(file, digest string, findings []preflight.Finding) error {
	kept := keptFindings{Digest: digest, Findings: findings, Skip: make([]bool, len(findings))}
	for i, f := range findings {
		kept.Skip[i] = f.Skip
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return fs.Replace(file, text)
}

// digest returns a digest of everything that the findings depend on, except git: its facts about pinned revisions never
// change.
func (p *survey) digest(in *preflight.Input, patches map[string]git.Patching) (string, error) {
	sums := map[string]string{}
	for key, patch := range patches {
		sums[key] = fmt.Sprintf("%x", sha256.Sum256(patch.Text))
	}
	guards := map[string][]string{}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Candidate != "" && s.Out == nil && len(s.Protect) > 0 {
			guards[s.Candidate] = append([]string{s.Rev, s.Against, strconv.FormatBool(s.Copies)}, s.Protect...)
		}
	}
	text, err := json.Marshal([]any{p.basis, p.Trees, in, p.ownModels(), sums, guards})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// mistakes returns the mistakes of single rows of the file as findings. The evaluation has left these rows out.
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

// outcomeOf returns the outcome of a candidate that fails a check. After most failures it is NotRun: nothing was found
// out about the candidate.
func outcomeOf(f *preflight.Finding) stats.Outcome {
	switch {
	case f.Skip:
		return stats.Skipped
	case f.Check == preflight.Patch, f.Check == preflight.Protect, f.Check == preflight.Link,
		f.Check == preflight.Wheel:
		return stats.BuildFailed
	case f.Check == preflight.Memory:
		return stats.Infeasible
	}
	return stats.NotRun
}

// refuse notes the candidates and benchmarks that fail a check. Of several failures, the one counts that says most
// about the candidate.
func (p *survey) refuse(in *preflight.Input, findings []preflight.Finding) {
	r := tasks.Refusals{Candidates: map[string]tasks.Absence{}, Benchmarks: map[string]tasks.Absence{},
		Unguarded: map[string]bool{}}
	variants := map[string][]string{} // by commit
	for _, c := range in.Candidates {
		variants[c.Commit] = append(variants[c.Commit], c.Key)
	}
	idle := map[string]int{} // number of patterns of protect, by candidate
	for i := range findings {
		f := &findings[i]
		if f.Check == preflight.Protect && f.Status == preflight.Warn {
			idle[f.Candidate]++
		}
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
	for i := range p.Spec.Sources {
		s := &p.Spec.Sources[i]
		if n := idle[s.Candidate]; n > 0 && n == len(s.Protect) {
			r.Unguarded[s.Candidate] = true
		}
	}
	// Nothing is made for a candidate without a benchmark that can be measured.
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

// note keeps the absence that says most.
func note(gaps map[string]tasks.Absence, key string, gap tasks.Absence) {
	order := []stats.Outcome{stats.Skipped, stats.BuildFailed, stats.Infeasible, stats.NotRun}
	if was, known := gaps[key]; !known || slices.Index(order, gap.Outcome) < slices.Index(order, was.Outcome) {
		gaps[key] = gap
	}
}
