package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/preflight"
)

// heading is the heading for failures of one check.
type heading struct {
	check     preflight.Check
	one, many string
}

// headings returns the headings in the order in which they are printed.
func headings() []heading {
	return []heading{
		{preflight.Wheel, "wheel cannot be had", "wheels cannot be had"},
		{preflight.Image, "image cannot be had", "images cannot be had"},
		{preflight.Patch, "patch refused", "patches refused"},
		{preflight.Protect, "change of protected files", "changes of protected files"},
		{preflight.Link, "tree with a link that leads out of it", "trees with links that lead out of them"},
		{preflight.Memory, "model does not fit", "models do not fit"},
		{preflight.Model, "model does not exist", "models do not exist"},
		{preflight.Gated, "commit without access to its model", "commits without access to their models"},
		{preflight.Architecture, "commit for other hardware or without the model's architecture",
			"commits for other hardware or without the model's architecture"},
		{preflight.Placeholder, "commit without a command", "commits without a command"},
		{preflight.Script, "missing script", "missing scripts"},
		{preflight.Flag, "unknown flag", "unknown flags"},
		{preflight.Path, "missing path", "missing paths"},
		{preflight.Dataset, "missing data set", "missing data sets"},
		{preflight.Parent, "wrong parent", "wrong parents"},
		{preflight.Version, "candidate with a known issue", "candidates with a known issue"},
		{preflight.Methodology, "methodology that differs", "methodologies that differ"},
		{preflight.Disk, "disk too small", "disks too small"},
		{preflight.Driver, "driver too old", "drivers too old"}}
}

// Preflight prints a summary of the findings in one line and, if verbose, each finding that is not ok. builds
// is the number of wheels to build.
func Preflight(w io.Writer, s Style, found []preflight.Finding, builds int, verbose bool) error {
	var parts []string
	ancestors := 0
	for _, f := range found {
		if f.Check == preflight.Wheel && f.Status == preflight.OK && strings.HasPrefix(f.Evidence, preflight.Ancestor) {
			ancestors++
		}
	}
	switch {
	case builds > 0 && ancestors > 0:
		parts = append(parts, fmt.Sprintf("%s to build (%s served by an ancestor with the same native tree)",
			count(builds, "wheel", "wheels"), Number(ancestors)))
	case builds > 0:
		parts = append(parts, count(builds, "wheel", "wheels")+" to build")
	case ancestors > 0:
		parts = append(parts, count(ancestors, "wheel", "wheels")+" served by an ancestor with the same native tree")
	}
	var b strings.Builder
	for _, h := range headings() {
		list := of(found, func(f *preflight.Finding) bool { return f.Check == h.check && f.Status == preflight.Fail })
		if n := distinct(h.check, list); n > 0 {
			parts = append(parts, count(n, h.one, h.many))
			tell(&b, s, count(n, h.one, h.many), list)
		}
	}
	for _, rest := range []struct {
		status    preflight.Status
		one, many string
	}{{preflight.Warn, "warning", "warnings"}, {preflight.Unverified, "not verified", "not verified"}} {
		if list := of(found, func(f *preflight.Finding) bool { return f.Status == rest.status }); len(list) > 0 {
			parts = append(parts, count(len(list), rest.one, rest.many))
			tell(&b, s, count(len(list), rest.one, rest.many), list)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	text := s.Bold("Preflight: ") + strings.Join(parts, " · ")
	if b.Len() > 0 && !verbose {
		text += " (plan -verbose lists them)"
	}
	if text += "\n"; verbose {
		text += b.String()
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

func of(found []preflight.Finding, is func(*preflight.Finding) bool) []preflight.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f preflight.Finding) bool { return !is(&f) })
}

// distinct counts findings: those of patches, wheels and known issues by candidate, all others by commit.
func distinct(k preflight.Check, list []preflight.Finding) int {
	seen := map[string]bool{}
	for _, f := range list {
		switch k {
		case preflight.Patch, preflight.Protect, preflight.Link, preflight.Version, preflight.Wheel:
			seen[f.Candidate+"\x00"+f.Commit] = true
		case preflight.Flag, preflight.Script, preflight.Path, preflight.Dataset:
			seen[f.Commit+"\x00"+f.Evidence] = true
		default:
			seen[f.Commit] = true
		}
	}
	return len(seen)
}

func count(n int, one, many string) string {
	if n != 1 {
		one = many
	}
	return Number(n) + " " + one
}

// tell lists findings under a title. Equal findings of several variants are listed once.
func tell(b *strings.Builder, s Style, title string, list []preflight.Finding) {
	type id struct{ check, commit, evidence, place string }
	var order []id
	who := map[id][]string{}
	remedies := map[id]string{}
	for _, f := range list {
		k := id{string(f.Check), f.Commit, f.Evidence, f.Place}
		if who[k] == nil {
			order = append(order, k)
		}
		name := f.Commit
		if f.Candidate != "" {
			name = f.Candidate
			if len(who[k]) > 0 {
				_, name, _ = strings.Cut(f.Candidate, "/")
			}
		}
		who[k], remedies[k] = append(who[k], name), f.Remedy
	}
	fmt.Fprintf(b, "  %s\n", s.Bold(title))
	for _, k := range order {
		name := cmp.Or(strings.Join(who[k], ", "), "project")
		fmt.Fprintf(b, "    %s  %s: %s\n", Clean(name), k.check, Clean(k.evidence))
		if r := remedies[k]; r != "" {
			fmt.Fprintf(b, "      → %s\n", Clean(r))
		}
		if k.place != "" {
			fmt.Fprintf(b, "      %s\n", Clean(k.place))
		}
	}
}
