package advice

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchgraph/benchgraph/hclspec"
)

// patches warns of a variant with an optional patch that no commit has, if a file with a similar path is there. Without
// such a file, the patches may not be written yet.
func (a *adviser) patches(spec *hclspec.Spec) {
	used := map[string]bool{}
	for i := range spec.Candidates {
		used[spec.Candidates[i].Patch] = true
	}
	for i := range spec.Variants {
		v := &spec.Variants[i]
		var lacking []*hclspec.Candidate
		for j := range spec.Candidates {
			if c := &spec.Candidates[j]; c.Variant == v.Name && c.Out == nil {
				lacking = append(lacking, c)
			}
		}
		if !v.Optional || slices.ContainsFunc(lacking, func(c *hclspec.Candidate) bool { return c.NoFile == "" }) {
			continue
		}
		for _, c := range lacking {
			if near := similar(spec, c.NoFile); near != "" && !used[near] {
				a.warn(c.PatchRange, v.Name, "Variant without patches", "No commit has a patch of variant.%s: there "+
					"is no file %s, but there is %s. Correct the path.", v.Name, c.NoFile, near)
				break
			}
		}
	}
}

// similar returns the path of a file of the project that differs from a missing path in one similar component; "" if
// there is none. A file whose name differs only in digits belongs to another commit or round, and does not count.
func similar(spec *hclspec.Spec, missing string) string {
	parts := strings.Split(missing, "/")
	for i, part := range parts {
		dir := path.Join(parts[:i]...)
		list, err := os.ReadDir(spec.Path(cmp.Or(dir, ".")))
		if err != nil {
			return ""
		}
		near, nearest := "", 0.7
		for _, f := range list {
			other := path.Join(dir, f.Name(), path.Join(parts[i+1:]...))
			like := levenshtein.Match(part, f.Name(), nil)
			if like <= nearest || withoutDigits(f.Name()) == withoutDigits(part) {
				continue
			}
			if info, err := os.Stat(spec.Path(other)); err == nil && info.Mode().IsRegular() {
				near, nearest = other, like
			}
		}
		if near != "" {
			return near
		}
	}
	return ""
}

func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// total warns of a skip by names or parameters that leaves out all candidates of several commits. A condition about
// variables may be a switch.
func (a *adviser) total(spec *hclspec.Spec, block *hclsyntax.Block) {
	if block.Type != "skip" || len(block.Labels) != 1 || len(spec.Benchmarks) == 0 {
		return
	}
	for _, attr := range block.Body.Attributes {
		for _, v := range attr.Expr.Variables() {
			if root := v.RootName(); root == "var" || root == "local" {
				return
			}
		}
	}
	name, out := block.Labels[0], map[string]bool{}
	for i := range spec.Skips {
		if s := &spec.Skips[i]; s.Address.Name == name {
			out[cmp.Or(s.Candidate, s.Address.Key)] = true
		}
	}
	commits := map[string]bool{}
	for i := range spec.Candidates {
		c := &spec.Candidates[i]
		if !out[c.Key] && !out[c.Commit] {
			return
		}
		commits[c.Commit] = true
	}
	if len(commits) > 1 {
		a.warn(block.DefRange(), name, "Skip of everything", "skip.%s leaves out all candidates of all %d commits, so "+
			"that nothing is measured. Correct its condition.", name, len(commits))
	}
}
