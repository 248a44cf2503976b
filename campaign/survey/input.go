package survey

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/glob"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/packs"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/requirement"
	"github.com/benchgraph/benchgraph/preflight/revision"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/tasks"
)

// input gathers the facts of the file for the checks, and the patches to try, by candidate.
func (p *survey) input(ctx context.Context) (*preflight.Input, map[string]git.Patching) {
	in := &preflight.Input{Devices: map[string][]requirement.Device{}, Patches: map[string]string{},
		Trespasses: map[string]preflight.Refusal{}, Pointers: map[string]string{}, Escapes: map[string]string{},
		Idle: map[string][]preflight.Refusal{}}
	patches := map[string]git.Patching{}
	trees := map[hclspec.Address]revision.Tree{}
	for i := range p.Spec.Sources {
		if s := &p.Spec.Sources[i]; s.Out == nil {
			trees[s.Address] = p.treeOf(s, patches)
		}
	}
	for i := range p.Spec.Commits {
		c := &p.Spec.Commits[i]
		if c.Out == nil {
			parent := c.Parent
			if p.Lock.Repos[c.Repo.Name].Revs[parent].Unknown != "" {
				parent = "" // a mistake that is reported where the file names the parent
			}
			in.Commits = append(in.Commits, preflight.Commit{Name: c.Name, Repo: c.Repo.Name, Rev: c.Rev,
				Parent: parent, Title: c.Title, Params: string(c.Params), Place: rangeText(c.Range)})
		}
	}
	excluded, skips := p.declaredOut()
	for i := range p.Spec.Candidates {
		c := &p.Spec.Candidates[i]
		one := preflight.Candidate{Key: c.Key, Commit: c.Commit, Baseline: c.Baseline, Tree: trees[c.Source],
			Place: rangeText(c.Range), Excluded: excluded[c.Key], Reason: skips[c.Key]}
		if c.Patch != "" {
			one.Place = rangeText(c.PatchRange)
		}
		in.Candidates = append(in.Candidates, one)
		if one.Excluded {
			delete(patches, c.Key)
		}
	}
	p.supplied(ctx, in, trees)
	k := commandsOf{p: p.Facts, trees: trees, engine: map[string]revision.Tree{},
		baseline: map[string]revision.Tree{}}
	for _, c := range in.Candidates {
		if k.engine[c.Key] = c.Tree; c.Baseline {
			k.baseline[c.Commit] = c.Tree
		}
	}
	for i := range p.Spec.Fixes {
		k.mending = append(k.mending, &p.Spec.Fixes[i])
	}
	k.fixEnv = fixEnv(p.Spec.Fixes)
	named := p.usedElsewhere()
	for i := range p.Spec.Benchmarks {
		b := &p.Spec.Benchmarks[i]
		if named[tasks.CommitOf(b.Candidate)] = true; b.Out == nil {
			in.Benchmarks = append(in.Benchmarks, k.benchmark(b))
		}
	}
	for i := range in.Commits {
		in.Commits[i].Named = named[in.Commits[i].Name]
	}
	return in, patches
}

// declaredOut returns the candidates that the file itself excludes, and the reasons of skip blocks, by candidate.
func (p *survey) declaredOut() (out map[string]bool, skips map[string]string) {
	out, skips = map[string]bool{}, map[string]string{}
	for i := range p.Spec.Candidates {
		c := &p.Spec.Candidates[i]
		out[c.Key] = c.NoPatch != "" || c.Out != nil
	}
	variants := map[string][]string{} // by commit; all under the empty name
	for i := range p.Spec.Candidates {
		c := &p.Spec.Candidates[i]
		variants[c.Commit], variants[""] = append(variants[c.Commit], c.Key), append(variants[""], c.Key)
	}
	each := func(block hclspec.Block, reason string) {
		keys := []string{block.Candidate}
		switch {
		case block.Candidate == "" && block.Address.Keyed:
			keys = variants[block.Address.Key]
		case block.Candidate == "":
			keys = variants[""]
		}
		for _, key := range keys {
			if out[key] = true; reason != "" {
				skips[key] = reason
			}
		}
	}
	for _, s := range p.Spec.Skips {
		each(s.Block, s.Reason)
	}
	for _, k := range p.Spec.KnownIssues {
		if k.Out == nil && k.Probe.Shell == nil && k.Probe.Argv == nil {
			each(k.Block, "")
		}
	}
	return out, skips
}

// treeOf returns the tree of a source. It adds the source's patch to patches, under the source's key.
func (p *survey) treeOf(s *hclspec.Source, patches map[string]git.Patching) revision.Tree {
	t := revision.Tree{Repo: s.Repo.Name, Rev: s.Rev}
	if s.Patch == "" {
		return t
	}
	text, err := os.ReadFile(p.Spec.Path(s.Patch))
	if err != nil {
		return t // the graph reports it
	}
	patches[s.Address.Key] = git.Patching{Commit: s.Rev, Text: text}
	if touched, err := git.TouchedPaths(text); err == nil {
		touched = slices.DeleteFunc(touched, func(name string) bool {
			return s.Copies && glob.Match(s.Protect, name) // the file is the baseline's
		})
		t.Patched = strings.Join(touched, "\n")
	}
	return t
}

// supplied adds the sources of wheels and images, and the known issues.
func (p *survey) supplied(ctx context.Context, in *preflight.Input, trees map[hclspec.Address]revision.Tree) {
	for i := range p.Spec.Wheels {
		w := &p.Spec.Wheels[i]
		if w.Out != nil || len(w.Prebuilt) == 0 && w.Build != nil && w.Candidate == "" {
			continue
		}
		served := p.ServedBy(w)
		state := preflight.WheelState{Candidate: w.Candidate, Place: rangeText(w.Range),
			Asked: w.Prebuilt, Known: served.Known(), Builds: w.Build != nil}
		if served.URL != "" {
			state.Serves, state.From = download.WithoutPassword(served.URL), served.Near.Commit
			state.Changed = !p.ServesPatched(w, p.SourceOf(w.Source))
		}
		in.Wheels = append(in.Wheels, state)
	}
	seen := map[string]bool{}
	machines := p.machinesOf(ctx, in)
	for i := range p.Spec.Images {
		m := &p.Spec.Images[i]
		from := p.beginsWith(ctx, m)
		if m.Out != nil || from == "" || seen[from] ||
			m.Candidate != "" && !p.tries(tasks.CommitOf(m.Candidate), m.Candidate) {
			continue
		}
		seen[from] = true
		state := preflight.ImageState{Candidate: m.Candidate,
			Place: rangeText(m.Range), Name: from, Unknown: p.Unresolved[from].Why,
			Machines: slices.Sorted(maps.Keys(machines[from]))}
		if len(in.Devices) > 0 {
			state.Requires = p.requires(ctx, from)
		}
		in.Images = append(in.Images, state)
	}
	contained := map[string]bool{}
	for i := range p.Spec.Benchmarks {
		if b := &p.Spec.Benchmarks[i]; b.Image != (hclspec.Address{}) {
			contained[b.Candidate] = true
		}
	}
	for i := range p.Spec.KnownIssues {
		if k := &p.Spec.KnownIssues[i]; k.Out == nil {
			in.Issues = append(in.Issues, preflight.Issue{
				Name: k.Address.Name, Candidate: k.Candidate, Place: rangeText(k.Range), Reason: k.Reason,
				Image: contained[k.Candidate], Probe: commandText(k.Probe),
			})
		}
	}
}

// beginsWith returns the name of the image with whose layers an image begins, by its from or its Dockerfile; "" if
// there is none, or if it is not known.
func (p *survey) beginsWith(ctx context.Context, m *hclspec.Image) string {
	if m.Build == nil || m.Out != nil {
		return m.From
	}
	build, err := p.ReadBuild(ctx, m.Build, p.OwnFiles())
	if err != nil {
		return "" // the graph reports it
	}
	return build.Base
}

// requires returns the variables by which an image says which driver it needs: from the lock, or else from the engine,
// which may have the image by now although its registry did not tell the variables.
func (p *survey) requires(ctx context.Context, name string) map[string]string {
	base := tasks.BaseOf(p.Lock, name)
	if known := p.Lock.Images[name].Requires; len(known) > 0 || base.Digest == "" || p.Lacks[false](ctx) != "" {
		return known
	}
	img, err := p.Engine.Image(ctx, base.Ref())
	if err != nil {
		return nil // preflight may know it by the name of the image
	}
	return img.Requires()
}

// usedElsewhere returns the commits that blocks of other commits use: such a commit is in the file for a reason, even
// if no benchmark measures it.
func (p *survey) usedElsewhere() map[string]bool {
	used := map[string]bool{}
	note := func(by hclspec.Block, refs ...hclspec.Address) {
		for _, a := range refs {
			if commit := tasks.CommitOf(a.Key); commit != "" && commit != tasks.CommitOf(by.Candidate) {
				used[commit] = true
			}
		}
	}
	for i := range p.Spec.Wheels {
		note(p.Spec.Wheels[i].Block, p.Spec.Wheels[i].Source)
	}
	for i := range p.Spec.Images {
		note(p.Spec.Images[i].Block, append(slices.Clip(p.Spec.Images[i].Install), p.Spec.Images[i].Base)...)
		if o := p.Spec.Images[i].Overlay; o != nil {
			note(p.Spec.Images[i].Block, o.Source, o.Over)
		}
	}
	for i := range p.Spec.Tasks {
		t := &p.Spec.Tasks[i]
		note(t.Block, append(slices.Clip(t.Needs), t.Source, t.Image)...)
		for _, d := range t.Data {
			note(t.Block, d.Ref)
		}
	}
	for i := range p.Spec.Benchmarks {
		for _, d := range p.Spec.Benchmarks[i].Data {
			note(p.Spec.Benchmarks[i].Block, d.Ref)
		}
	}
	return used
}

// commandsOf has the data that is needed to describe the commands of benchmarks.
type commandsOf struct {
	p        *tasks.Facts
	trees    map[hclspec.Address]revision.Tree
	engine   map[string]revision.Tree // the installed tree, by candidate
	baseline map[string]revision.Tree // by commit
	fixEnv   []string                 // variables that some fix sets
	mending  []*hclspec.Fix
}

// mountsOf returns the mounts with these addresses. The source of each is a path of this machine.
func (k *commandsOf) mountsOf(addresses []hclspec.Address) []hclspec.Mount {
	var all []hclspec.Mount
	for _, m := range tasks.MountsAt(k.p.Spec, addresses) {
		one := *m
		if !m.Volume {
			one.Source = k.p.MountSource(m)
		}
		all = append(all, one)
	}
	return all
}

// benchmark returns the facts of a benchmark and its commands.
func (k *commandsOf) benchmark(b *hclspec.Benchmark) preflight.Benchmark {
	one := preflight.Benchmark{
		Address: b.Address.String(), Commit: tasks.CommitOf(b.Candidate), Candidate: b.Candidate,
		Place: rangeText(b.Range), Image: b.Image != (hclspec.Address{}),
		Client: k.trees[b.Client], Command: commandText(b.Command), Env: envTexts(b.Env),
		Secrets: b.Secrets,
		Data:    map[string]revision.Tree{}, FixEnv: k.fixEnv, Engine: k.engine[b.Candidate],
		Installed: k.engine[b.Candidate],
	}
	one.Mended = !one.Image && slices.ContainsFunc(k.mending, func(f *hclspec.Fix) bool {
		c, declared := f.Cases[b.Candidate]
		if !declared {
			c = f.Cases[""]
		}
		return (c.When || k.p.Learnt(f.Address.Name, b.Address, b.Candidate)) && len(c.Files)+len(c.Run) > 0
	})
	if t, ok := k.baseline[one.Commit]; ok {
		one.Installed = t
	}
	for _, d := range b.Data {
		one.Data[d.Name] = k.trees[d.Ref]
	}
	for _, m := range k.mountsOf(b.Mounts) {
		at := m.Source
		if one.Image {
			at = m.Target
		}
		one.Mounts, one.Env[m.Variable] = append(one.Mounts, at), at
	}
	for i := range k.p.Spec.Caches {
		if c := &k.p.Spec.Caches[i]; slices.Contains(b.Caches, c.Address) {
			one.Mounts = append(one.Mounts, c.Path)
		}
	}
	if b.FillsOtherwise() {
		one.Fill = commandText(b.Fill)
	}
	if b.Server != nil {
		one.Server, one.ServerEnv = commandText(b.Server.Command), envTexts(b.Server.Env)
	}
	if b.GPUs != nil {
		one.GPUs, one.Memory, one.Model = b.GPUs.Count, b.GPUs.Memory, b.GPUs.Model
		one.Machine = machineName(k.p.PlaceOf(b))
	}
	return one
}

// fixEnv lists the variables that fixes set, each once.
func fixEnv(fixes []hclspec.Fix) []string {
	names := map[string]bool{}
	for i := range fixes {
		for _, c := range fixes[i].Cases {
			for name := range c.Env {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func envTexts(env map[string]hclspec.Text) map[string]string {
	texts := make(map[string]string, len(env))
	for name, t := range env {
		texts[name] = plainText(t)
	}
	return texts
}

// commandText returns a command with marks in place of the paths of results.
func commandText(c hclspec.Command) program.Text {
	t := program.Text{Place: rangeText(c.Range)}
	if c.Shell != nil {
		t.Shell = plainText(c.Shell)
	}
	for _, a := range c.Argv {
		t.Argv = append(t.Argv, plainText(a))
	}
	return t
}

func plainText(t hclspec.Text) string {
	var b strings.Builder
	for _, part := range t {
		if part.Ref != (hclspec.Address{}) {
			b.WriteString(sh.Ref + strings.Map(func(r rune) rune {
				if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-[]", r) {
					return r
				}
				return '_' // the character may mean something to a shell
			}, part.Ref.String()) + sh.RefEnd)
			continue
		}
		b.WriteString(part.Literal)
	}
	return b.String()
}

// ownModels returns the models that the project declares.
func (p *survey) ownModels() (own []requirement.Model) {
	for i := range p.Spec.Models {
		m := &p.Spec.Models[i]
		exists := !m.Missing
		own = append(own, modelOf(packs.Model{
			Name: m.Address.Name, Exists: &exists, Parameters: m.Parameters, Weights: m.Weights,
			Quantization: m.Quantization,
			Architecture: m.Architecture, MaxLength: m.MaxLength, Cache: m.Cache, Gated: m.Gated, Rope: m.Rope,
		}))
	}
	return own
}

func modelOf(m packs.Model) requirement.Model {
	spec := requirement.Model{
		Name: m.Name, Missing: m.Exists != nil && !*m.Exists, Parameters: m.Parameters,
		Bytes: cmp.Or(m.Weights, 2*m.Parameters), Architecture: m.Architecture,
		Gated: m.Gated, MaxLen: m.MaxLength, TokenBytes: m.Cache, Rope: m.Rope, Weights: m.Quantization,
	}
	return spec
}
