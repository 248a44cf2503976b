package advice

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
)

// candidates warns of variants that are the baseline, and of benchmarks without it.
func (a *adviser) candidates(spec *hclspec.Spec) {
	baselines := map[string]*hclspec.Candidate{} // by commit
	for i := range spec.Candidates {
		if c := &spec.Candidates[i]; c.Baseline {
			baselines[c.Commit] = c
		}
	}
	if len(spec.Compares) == 0 {
		return
	}
	for i := range spec.Variants {
		v := &spec.Variants[i]
		all, same := 0, 0
		var one, base *hclspec.Candidate
		for j := range spec.Candidates {
			c := &spec.Candidates[j]
			if c.Variant != v.Name || v.Baseline || c.Out != nil || c.NoPatch != "" {
				continue
			}
			all++
			if b := baselines[c.Commit]; b != nil && b.Rev == c.Rev && b.Patch == c.Patch {
				same++
				one, base = c, b
			}
		}
		if all > 0 && same == all && alike(spec, one, base) {
			a.warn(v.Range, v.Name, "Variant that is the baseline", "variant.%s does the same as the baseline, "+
				"variant.%s, so that there is nothing to compare. Give one of them another rev, such as "+
				"rev = each.commit.parent in the baseline, a patch, or an artefact of its own.", v.Name, base.Variant)
		}
	}
	a.without(spec, baselines)
}

// alike reports whether all blocks do the same for two candidates. It is costly.
func alike(spec *hclspec.Spec, one, other *hclspec.Candidate) bool {
	texts := map[string][]string{}
	made := one.Source.Kind != ""
	add := func(candidate string, block any) {
		if candidate == one.Key || candidate == other.Key {
			text, _ := json.Marshal(block) // only the encoding of strange numbers fails, and both fail
			// Keys in addresses differ by nature, those in commands do not.
			key, _ := json.Marshal(candidate)
			for _, field := range []string{`"Key":`, `"Candidate":`} {
				text = bytes.ReplaceAll(text, append([]byte(field), key...), nil)
			}
			texts[candidate] = append(texts[candidate], string(text))
		}
	}
	for i := range spec.Wheels {
		add(spec.Wheels[i].Candidate, &spec.Wheels[i])
	}
	for i := range spec.Tasks {
		add(spec.Tasks[i].Candidate, &spec.Tasks[i])
	}
	for i := range spec.Images {
		add(spec.Images[i].Candidate, &spec.Images[i])
	}
	// Without anything that is made, hclspec has warned of the benchmark.
	made = made || len(texts) > 0
	for i := range spec.Benchmarks {
		add(spec.Benchmarks[i].Candidate, &spec.Benchmarks[i])
	}
	for i := range spec.Fixes {
		for _, c := range []*hclspec.Candidate{one, other} {
			add(c.Key, spec.Fixes[i].Cases[c.Key])
		}
	}
	return made && slices.Equal(texts[one.Key], texts[other.Key])
}

// without warns of benchmarks that a compare judges and whose for_each leaves out the baseline.
func (a *adviser) without(spec *hclspec.Spec, baselines map[string]*hclspec.Candidate) {
	judged := judged(spec)
	type group struct{ benchmark, commit string }
	has := map[group]bool{}
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		if commit, _, ok := strings.Cut(b.Candidate, "/"); ok && baselines[commit] != nil {
			g := group{b.Address.Name, commit}
			has[g] = has[g] || b.Candidate == baselines[commit].Key
		}
	}
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		commit, _, ok := strings.Cut(b.Candidate, "/")
		if base := baselines[commit]; ok && base != nil && base.Out == nil && b.Out == nil && judged[b.Address.Name] &&
			!has[group{b.Address.Name, commit}] {
			a.warn(b.Range, b.Address.Name, "Benchmark without the baseline", "for_each of benchmark.%s has the "+
				"candidate %s and not the baseline %s, so that there is no verdict. Let for_each keep the baseline.",
				b.Address.Name, b.Candidate, base.Key)
		}
	}
}

// estimate warns of a command whose timeout ends it before its estimated end.
func (a *adviser) estimate(at hcl.Range, of hclspec.Address, l hclspec.Limits, runs int) {
	if limit := l.Timeout * time.Duration(runs); limit > 0 && l.Estimate > limit {
		a.warn(at, of.Kind+"."+of.Name, "Timeout below the estimate",
			"The estimate of %s.%s is %s, and its timeout of %s ends it before. Correct one of them.", of.Kind, of.Name,
			l.Estimate, l.Timeout)
	}
}
