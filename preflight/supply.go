package preflight

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/preflight/probe"
	"github.com/benchgraph/benchgraph/preflight/requirement"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

// commits checks the commits themselves.
func (c *checker) commits() {
	c.candidate = ""
	known := map[[4]string]*Commit{} // by everything that determines samples
	for i := range c.in.Commits {
		commit := &c.in.Commits[i]
		c.commit, c.place = commit.Name, commit.Place
		if commit.Repo == "" {
			continue
		}
		all := [4]string{commit.Repo, commit.Rev, commit.Parent, commit.Params}
		if same := known[all]; same != nil {
			c.add(Twice, Warn, fmt.Sprintf("%s is commit %q as well, at %s: both have the same samples, and each "+
				"counts as a result of its own", short(commit.Rev), same.Name, same.Place), "leave one of them out")
		} else {
			known[all] = commit
		}
		if lost := cmp.Or(c.in.Lost[commit.Rev], c.in.Lost[commit.Parent]); lost.Remedy != "" {
			c.add(Parent, Warn, lost.Why, lost.Remedy)
			continue
		}
		if !commit.Known {
			c.add(Parent, Unverified, "the history of "+short(commit.Rev)+" is not known", "")
			continue
		}
		c.parent(commit)
		c.hardware(commit)
		if why := cmp.Or(c.in.Pointers[commit.Rev], c.in.Pointers[commit.Parent]); why != "" {
			c.add(LFS, Warn, why, "declare the files that a command reads in data, as a fetch or a task")
		}
	}
}

func (c *checker) parent(commit *Commit) {
	first := ""
	if len(commit.Parents) > 0 {
		first = commit.Parents[0]
	}
	says := fmt.Sprintf("the declared parent is %s, git's first parent of %s is %s", short(commit.Parent),
		short(commit.Rev), cmp.Or(short(first), "none"))
	const remedy = "leave parent out: git knows it"
	switch {
	case commit.Parent == "":
	case commit.Parent == first:
		c.add(Parent, OK, "git's first parent is "+short(first), "")
	case commit.Parent == commit.Rev:
		c.add(Parent, Warn, "the declared parent is the commit itself, "+short(commit.Rev), remedy)
	case commit.After:
		c.add(Parent, Warn, says+"; the declared one has the commit in its history", remedy)
	case slices.Contains(commit.Parents, commit.Parent):
		c.add(Parent, Warn, says+"; the declared one is another parent of the merge", remedy)
	case commit.Related:
		c.add(Parent, Warn, says+"; more than this commit lies between them", remedy)
	default:
		c.add(Parent, Warn, says+"; the declared one is not in the history of the commit", remedy)
	}
}

var (
	amdPath = regexp.MustCompile(`(?i)(^|[/_.,=-])(rocm|hip|amd|mi300x?|mi325x?|mi350x?|mi250x?|mi200|gfx9[0-9a-f]*|` +
		`aiter|hipify)([/_.,-]|$)`)
	amdTitle  = regexp.MustCompile(`(?i)\[[^\]]*(rocm|amd|hip)[^\]]*\]|\bmi(200|250|300|325|350)x?\b`)
	amdDevice = regexp.MustCompile(`(?i)\bamd\b|instinct|radeon|\bmi(200|250|300|325|350)`)
	prose     = regexp.MustCompile(`(?i)\.(md|rst|txt)$|^docs?/|^tests?/|^\.github/|^\.buildkite/`)
)

// hardware checks whether a commit changes code for the present devices.
func (c *checker) hardware(commit *Commit) {
	if len(commit.Changed) == 0 || !c.measured(commit.Name, func(b *Benchmark) bool { return b.GPUs > 0 }) ||
		slices.ContainsFunc(c.devices(), func(d requirement.Device) bool {
			return amdDevice.MatchString(d.Name)
		}) {
		return
	}
	var code, amd []string
	for _, name := range commit.Changed {
		if !prose.MatchString(name) {
			code = append(code, name)
			if amdPath.MatchString(name) {
				amd = append(amd, name)
			}
		}
	}
	const remedy = "skip the commit, or measure it on a machine with AMD devices"
	switch {
	case len(code) > 0 && len(amd) == len(code):
		status := Fail
		if len(c.devices()) == 0 && !c.measured(commit.Name, func(b *Benchmark) bool {
			return nvidia.MatchString(b.Model) && !amdDevice.MatchString(b.Model)
		}) {
			status = Warn
		}
		c.add(Architecture, status, fmt.Sprintf("all %d changed files are for AMD devices, such as %s", len(code),
			amd[0]), remedy)
		c.found[len(c.found)-1].Skip = true
	case amdTitle.MatchString(commit.Title):
		c.add(Architecture, Warn, fmt.Sprintf("the title names AMD devices: %q", commit.Title), remedy)
	}
}

// measured reports whether a benchmark of the commit satisfies is.
func (c *checker) measured(commit string, is func(*Benchmark) bool) bool {
	return slices.ContainsFunc(c.in.Benchmarks, func(b Benchmark) bool { return b.Commit == commit && is(&b) })
}

var nvidia = regexp.MustCompile(`(?i)nvidia|[abhlv]\d{2,3}|rtx|tesla|geforce|gb200|gh200`)

// patches reports which patches apply, and which candidates change protected files.
func (c *checker) patches() {
	for _, cand := range c.in.Candidates {
		if cand.Excluded {
			continue
		}
		c.commit, c.candidate, c.place = cand.Commit, cand.Key, cand.Place
		if f, refused := c.in.Trespasses[cand.Key]; refused {
			c.add(Protect, Fail, f.Why, f.Remedy)
		}
		for _, idle := range c.in.Idle[cand.Key] {
			c.add(Protect, Warn, idle.Why, idle.Remedy)
		}
		if why := c.in.Escapes[cand.Tree.Rev]; why != "" {
			c.add(Link, Fail, why, "leave the candidate out: nothing of such a tree is laid out")
		}
		switch why, tried := c.in.Patches[cand.Key]; {
		case !tried:
		case why == "":
			c.add(Patch, OK, "it applies to "+short(cand.Tree.Rev), "")
		case why == OnlyModes:
			c.add(Patch, Warn, why, "unless that is meant, make the patch again with the changed files")
		case strings.HasPrefix(why, NotTried):
			c.add(Patch, Unverified, strings.TrimPrefix(why, NotTried), "")
		default:
			c.add(Patch, Fail, why, "make the patch anew against "+short(cand.Tree.Rev)+": nothing of it is applied")
		}
	}
}

// Texts of evidence, or their beginnings.
const (
	OnlyModes = "it changes only modes of files" // of a patch that applies and changes no content
	NotTried  = "not tried: "                    // of a patch that could not be tried
	Ancestor  = "served by the ancestor"         // of a wheel that was made from another revision
)

// supplies reports the sources of wheels and images.
func (c *checker) supplies() {
	for i := range c.in.Wheels {
		w := &c.in.Wheels[i]
		c.commit, c.candidate, c.place = commitOf(w.Candidate), w.Candidate, w.Place
		const remedy = "apply builds it, before anything asks for a device"
		asked := fmt.Sprintf("none of %d prebuilt sources has it, the last is %s", len(w.Asked),
			strings.Join(w.Asked[max(0, len(w.Asked)-1):], ""))
		open := fmt.Sprintf("nobody has asked yet whether one of %d prebuilt sources has it", len(w.Asked))
		switch {
		case w.Serves != "" && w.Changed && w.Builds:
			c.add(Wheel, Warn, "the patch changes what a prebuilt wheel holds; it has to be built here", remedy)
		case w.Serves != "" && w.Changed:
			c.add(Wheel, Fail, "the patch changes what a prebuilt wheel holds, and there is no build block",
				"add a build block")
		case w.Serves != "" && w.From != "":
			c.add(Wheel, OK, fmt.Sprintf(Ancestor+" %s, whose native files are the same: %s", short(w.From), w.Serves),
				"")
		case w.Serves != "":
			c.add(Wheel, OK, w.Serves, "")
		case len(w.Asked) == 0 && w.Builds:
			c.add(Wheel, OK, "it is built here", "")
		case !w.Known && w.Builds:
			c.add(Wheel, Unverified, open+"; else it is built here", "")
		case !w.Known:
			c.add(Wheel, Unverified, open, "plan once with a network")
		case w.Builds:
			c.add(Wheel, Warn, asked+"; it has to be built here", remedy)
		default:
			c.add(Wheel, Fail, asked+", and there is no build block",
				"add a build block, or a source that has the wheel")
		}
	}
	for i := range c.in.Images {
		m := &c.in.Images[i]
		c.commit, c.candidate, c.place = commitOf(m.Candidate), m.Candidate, m.Place
		if m.Unknown == "" {
			c.add(Image, OK, m.Name, "")
		} else {
			c.add(Image, Unverified, m.Name+": "+m.Unknown, "plan where the registry or the engine can be reached")
		}
	}
}

func commitOf(candidate string) string {
	commit, _, _ := strings.Cut(candidate, "/")
	return commit
}

// uncovered reports the commits that no benchmark measures, even if they are skipped for that reason.
func (c *checker) uncovered() {
	measured, reasons := map[string]bool{}, map[string]string{}
	for _, b := range c.in.Benchmarks {
		measured[b.Commit] = true
	}
	total := map[string]int{}
	for _, cand := range c.in.Candidates {
		total[cand.Commit]++
		if cand.Excluded && cand.Reason != "" {
			reasons[cand.Commit] = "; it is skipped: " + cand.Reason
		}
	}
	for i := range c.in.Commits {
		commit := &c.in.Commits[i]
		if len(measured) == 0 || measured[commit.Name] || commit.Named || total[commit.Name] == 0 {
			continue
		}
		c.commit, c.candidate, c.place = commit.Name, "", commit.Place
		c.add(Placeholder, Fail, "no benchmark measures this commit: it has no command"+reasons[commit.Name],
			"give it a command, or declare a skip with the reason")
	}
}

// issues reports which known issues hold, as far as the tree tells.
func (c *checker) issues() {
	trees := map[string]revision.Tree{}
	for _, cand := range c.in.Candidates {
		trees[cand.Key] = cand.Tree
	}
	for i := range c.in.Issues {
		issue := &c.in.Issues[i]
		c.commit, c.candidate, c.place = commitOf(issue.Candidate), issue.Candidate, issue.Place
		if issue.Probe.Empty() {
			c.add(Version, Fail, issue.Name+": "+issue.Reason, "measure another revision, or narrow the issue's scope")
			c.found[len(c.found)-1].Skip = true
			continue
		}
		switch passes, known := probe.Passes(issue.Probe, issue.Image, trees[issue.Candidate], c.files); {
		case !known:
			c.add(Version, Warn, issue.Name+": the declared scope holds, and apply asks its probe: "+issue.Reason, "")
		case passes:
			c.add(Version, OK, issue.Name+": its probe finds nothing in the tree", "")
		default:
			c.add(Version, Fail, issue.Name+": its probe finds it in the tree: "+issue.Reason,
				"measure another revision, or add a fix")
			c.found[len(c.found)-1].Skip = true
		}
	}
}
