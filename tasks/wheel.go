package tasks

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/workdir"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/wheel"
)

// A wheel is one node, or two if it declares an overlay: a build node, which candidates share whose trees differ only
// in overlay paths, and the wheel node, which lays the candidate's own files over the compiled ones.

// buildTask runs a build command in a source tree.
type buildTask struct {
	work
	at      hclspec.Address
	source  hclspec.Address // the source node; zero: tree is set, or there is no source
	tree    *tree           // checked out by the task itself, since only a part of it is in the key
	outside string          // digest of the part of tree that is in the key
	overlay []string        // patterns of the part that is not in the key
	repo    hclspec.Address // of the source; its tags give the version
	rev     string          // of the source, 40 digits; empty: no source
	outputs []string

	system, arch string // target platform, as Go names it
}

func (t *buildTask) Describe(d *cache.Description) {
	d.Add("arch", t.system, t.arch)
	if t.tree != nil {
		d.Add("outside", t.outside)
	}
	if t.source != (hclspec.Address{}) {
		d.Add("source", t.refs.Label(t.source))
	}
	t.describeFiles(d)
	t.describe(d, nil, t.outputs)
}

func (t *buildTask) Run(ctx context.Context, env *engine.Env) (err error) {
	src, made := filepath.Join(env.Work, "src"), filepath.Join(env.Work, "out")
	sh, err := t.enter(ctx, env, shell.Place{
		Dir: src, Out: made, Tree: t.source, InTree: true, Node: t.at, Env: t.versioned(ctx, env.Log)})
	if err != nil {
		return err
	}
	defer func() { err = sh.Secrets.Conceal(err) }()
	if t.tree != nil {
		if _, err := t.tree.layOut(ctx, env, src); err != nil {
			return err
		}
		if err := wheel.Record(src, t.overlay, env.Out); err != nil {
			return err
		}
	}
	for _, f := range t.files {
		if err := f.lay(env, t.p.Spec.Dir, src); err != nil {
			return err
		}
	}
	if err := sh.Apply(ctx, t.fixes); err != nil {
		return err
	}
	env.Emit(engine.Event{Type: engine.NodeProgress, Phase: "build"})
	if err := sh.Run(ctx, "build", t.of.Command, t.of.Timeout, nil); err != nil {
		return err
	}
	return workdir.Keep(ctx, env, made, t.outputs, sh.Secrets)
}

// overlayTask lays a candidate's own files over the result of a build.
type overlayTask struct {
	refs     input.Refs
	built    hclspec.Address
	source   hclspec.Address
	patterns []string
}

func (t *overlayTask) Describe(d *cache.Description) { d.Add("overlay", t.patterns...) }

func (t *overlayTask) Run(_ context.Context, env *engine.Env) error {
	err := wheel.Apply(t.refs.Input(env, t.built).Dir, t.refs.Input(env, t.source).Dir, t.patterns, env.Out)
	if err != nil {
		return &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Permanent, Rule: "overlay",
			Stage: "build", Message: err.Error()}}
	}
	return nil
}

// Builds reports whether a node builds a wheel. Other nodes of wheels download, or lay an overlay over a build.
func Builds(n *engine.Node) bool {
	_, ok := n.Task.(*buildTask)
	return ok
}

// addWheels adds the nodes of all wheels. The inputs of their builds are hashed together, on all cores.
func (b *builder) addWheels(ctx context.Context) error {
	var inputs [][]string
	for i := range b.Spec.Wheels {
		if build := b.Spec.Wheels[i].Build; build != nil {
			inputs = append(inputs, build.Inputs)
		}
	}
	if err := b.hashInputs(ctx, inputs); err != nil {
		return err
	}
	for i := range b.Spec.Wheels {
		if err := b.addWheel(ctx, &b.Spec.Wheels[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) addWheel(ctx context.Context, w *hclspec.Wheel) error {
	if w.Out != nil {
		b.addOut(w.Block)
		return nil
	}
	src := b.source(w.Source)
	by, origin := b.originOf(w, src)
	base := w.Address
	if len(w.Overlay) > 0 && src != nil {
		base.Kind = "build"
		r := input.Refs{base, w.Source}
		b.add(w.Block, &overlayTask{refs: r, built: base, source: w.Source, patterns: w.Overlay}, r).Origin = origin
	}
	switch {
	case by.URL != "":
		b.addPrebuilt(base, w, src, by).Origin = origin
	case w.Build != nil:
		n, err := b.addBuild(ctx, base, w, src)
		if err != nil {
			return err
		}
		n.Origin = origin
	default:
		n := b.addAt(base, w.Block, &downloadTask{p: b.Drawing, url: strings.Join(w.Prebuilt, " ")}, nil)
		n.Exclude = blocked("none of the prebuilt sources of %s serves it, and it declares no build", w.Address)
		n.Origin = origin
	}
	return nil
}

func (b *builder) addPrebuilt(at hclspec.Address, w *hclspec.Wheel, src *hclspec.Source, by Served) *engine.Node {
	t := &prebuiltTask{downloadTask: downloadTask{p: b.Drawing, url: by.URL, expected: b.Lock.Fetches[by.URL].SHA256,
		most: hclspec.MaxDownload}, wheel: w}
	var order []hclspec.Address
	if src != nil {
		t.tree = &tree{p: b.Facts, repo: src.Repo, rev: cmp.Or(by.Near.Commit, src.Rev)}
		order = append(order, src.Repo)
	}
	n := b.addAt(at, w.Block, t, nil, order...)
	n.Resources.CPUs = device.NoCore
	return n
}

// originOf returns the prebuilt source of a wheel, zero if the wheel is built, and the origin that the plan shows.
func (b *builder) originOf(w *hclspec.Wheel, src *hclspec.Source) (Served, *engine.Origin) {
	if len(w.Prebuilt) == 0 {
		return Served{}, nil
	}
	by := b.ServedBy(w)
	origin := &engine.Origin{Passed: []string{}}
	switch {
	case !by.Known():
		origin.Reason = "unverified: its prebuilt sources have not answered"
		return Served{}, origin
	case by.Here && w.Nearest > 0:
		origin.Reason = fmt.Sprintf("no prebuilt source has it, nor one of an ancestor with the same native tree up "+
			"to %d commits back", w.Nearest)
	case by.Here:
		origin.Reason = "no prebuilt source has it"
	case !b.ServesPatched(w, src):
		origin.Reason = "its patch changes files of a prebuilt wheel"
	default:
		origin.Serves = download.WithoutPassword(by.URL)
		if by.Near.Commit != "" {
			origin.Ancestor, origin.Back = by.Near.Commit, by.Near.Back
		}
	}
	refused := b.Lock.Refused[w.Address.Name]
	for _, other := range w.Prebuilt {
		if other == by.URL && origin.Serves != "" {
			break
		}
		origin.Passed = append(origin.Passed, withReason(other, refused[Refusal(w, other)]))
	}
	if origin.Serves == "" {
		by = Served{}
	}
	return by, origin
}

// ServesPatched reports whether a prebuilt wheel can stand for a source. It was built without the patch, so the patch
// may touch only files of the overlay.
func (p *Facts) ServesPatched(w *hclspec.Wheel, src *hclspec.Source) bool {
	if src == nil || src.Patch == "" {
		return true
	}
	t, err := p.tree(src)
	return err == nil && git.TouchesOnly(t.bytes, w.Overlay)
}

func (b *builder) addBuild(ctx context.Context, at hclspec.Address, w *hclspec.Wheel,
	src *hclspec.Source) (*engine.Node, error) {
	source := w.Source
	if at.Kind == "build" {
		source = hclspec.Address{}
	}
	t := &buildTask{work: b.newWork(w.Block, &w.Build.Work, source, nil, b.onHost(w.Fixes, w.Build.Fixes)), at: at,
		source: source, outputs: w.Outputs}
	t.system, t.arch = b.platform()
	var err error
	if t.files, err = b.inputFiles(ctx, w.Address, w.Build.Inputs); err != nil {
		return nil, err
	}
	if src != nil {
		t.repo, t.rev = src.Repo, src.Rev
	}
	var order []hclspec.Address
	problem := ""
	if at.Kind == "build" {
		t.overlay = w.Overlay
		t.tree, t.outside, problem = b.outsideOf(w, src)
		order = append(order, src.Repo)
	}
	n := b.addAt(at, w.Block, t, t.refs, order...)
	b.setResources(n, &w.Build.Work)
	if problem != "" {
		n.Exclude = blocked("%s", problem)
	}
	return n, nil
}

// outsideOf returns the tree of a source, the digest of its part outside of the overlay, and a problem or "".
func (b *builder) outsideOf(w *hclspec.Wheel, src *hclspec.Source) (*tree, string, string) {
	t, err := b.tree(src)
	if err != nil {
		return nil, "", fmt.Sprintf("%s: %v", src.Patch, err)
	}
	base := b.Lock.Repos[src.Repo.Name].Outside[Patterns(w.Overlay)][src.Rev]
	if t.patch == "" {
		return t, base, ""
	}
	digest, err := git.OutsidePatched(base, t.rev, t.bytes, w.Overlay)
	if err != nil {
		return t, "", fmt.Sprintf("%s: %v", src.Patch, err)
	}
	if digest == base {
		// The patch changes nothing that the build reads. The build omits it: a patch that does not apply would
		// otherwise fail every candidate that shares the build.
		t = &tree{p: t.p, repo: t.repo, rev: t.rev}
	}
	return t, digest, ""
}
