package tasks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/distribution/reference"
	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/image/inventory"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/source/download"
)

// digestOf is the digest that the name of an image means; empty: not known.
func (p *facts) digestOf(name string) string {
	if ref, err := reference.ParseNormalizedNamed(name); err == nil {
		if exact, ok := ref.(reference.Digested); ok {
			return exact.Digest().String()
		}
	}
	return p.Lock.Images[name].Digest
}

// base is what the name of an image means.
func (p *facts) base(name string) image.Base {
	return image.Base{Name: name, Digest: p.digestOf(name), Size: p.Lock.Images[name].Size}
}

// wantedImage is the name of an image in the file, and where.
type wantedImage struct {
	name string
	at   hcl.Range
}

// missingImages are the names of images that nothing pins, each once.
func (p *resolver) missingImages(ctx context.Context) ([]wantedImage, hcl.Diagnostics) {
	var missing []wantedImage
	var diags hcl.Diagnostics
	seen := map[string]bool{}
	want := func(name string, at hcl.Range) {
		if name != "" && !seen[name] && p.digestOf(name) == "" {
			seen[name] = true
			missing = append(missing, wantedImage{name, at})
		}
	}
	for i := range p.Spec.Images {
		s := &p.Spec.Images[i]
		want(s.From, s.FromRange)
		if s.Build == nil {
			continue
		}
		build, err := p.readBuild(ctx, s.Build, p.ownFiles())
		if err != nil {
			diags = append(diags, problem(s.Build.Range, "Build context cannot be read", err.Error()))
			continue
		}
		for _, name := range build.Bases {
			want(name, s.Build.Range)
		}
	}
	return missing, diags
}

// resolveImages finds out which images the names in the file and in Dockerfiles mean. Where neither an engine nor a
// registry can tell, the image is blocked, and asked about again with the next plan.
func (p *resolver) resolveImages(ctx context.Context) (bool, hcl.Diagnostics) {
	p.unresolved = map[string]unknownImage{}
	missing, diags := p.missingImages(ctx)
	if len(missing) == 0 || diags.HasErrors() {
		return false, diags
	}
	if p.Locked {
		return false, append(diags, problem(missing[0].at, "Lock file is incomplete",
			fmt.Sprintf("Image %s is not pinned in the lock file, and -locked forbids to add it. Run without "+
				"-locked once and commit the lock file.", missing[0].name)))
	}
	fmt.Fprintf(p.Progress, "resolving images that are not pinned: %d\n", len(missing))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(8)
	changed := false
	var unanswered []wantedImage
	for _, w := range missing {
		g.Go(func() error {
			pin, open, err := p.resolveImage(ctx, w.name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				// a registry's error begins with the name, an engine's does not
				why := strings.TrimPrefix(err.Error(), w.name+": ")
				p.unresolved[w.name] = unknownImage{fmt.Sprintf("image %s is not known: %s", w.name, why), open}
				if open {
					unanswered = append(unanswered, w)
					return nil
				}
				d := problem(w.at, "Image cannot be resolved",
					fmt.Sprintf("%s: %s. What needs it is blocked; the next plan asks again.", w.name, why))
				d.Severity = hcl.DiagWarning
				diags = append(diags, d)
				return nil
			}
			if p.Lock.Images == nil {
				p.Lock.Images = map[string]hclspec.ImageLock{}
			}
			p.Lock.Images[w.name] = hclspec.ImageLock{Digest: pin.Digest, Size: pin.Size}
			changed = true
			return nil
		})
	}
	_ = g.Wait() // what fails is told above
	if ctx.Err() != nil {
		return changed, append(diags, problem(missing[0].at, "Image cannot be resolved", context.Cause(ctx).Error()))
	}
	slices.SortFunc(diags, func(a, b *hcl.Diagnostic) int { return strings.Compare(a.Detail, b.Detail) })
	return changed, append(diags, p.unansweredImages(unanswered)...)
}

// unansweredImages is one warning for all images of which nobody could be asked.
func (p *resolver) unansweredImages(list []wantedImage) hcl.Diagnostics {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b wantedImage) int { return strings.Compare(a.name, b.name) })
	others := ""
	if n := len(list) - 1; n > 0 {
		others = fmt.Sprintf(" The same holds for %d more.", n)
	}
	d := problem(list[0].at, "Image cannot be resolved",
		fmt.Sprintf("Unverified: %s.%s Nodes that need such an image are blocked here; the next plan asks again.",
			p.unresolved[list[0].name].why, others))
	d.Severity = hcl.DiagWarning
	return hcl.Diagnostics{d}
}

// unknownImage says why nobody knows which image a name means.
type unknownImage struct {
	why  string
	open bool // nobody could be asked from here: another machine may know
}

// resolveImage finds out which image a name means. open reports that an error is nobody's answer: none could be asked.
func (p *resolver) resolveImage(ctx context.Context, name string) (pin container.Pin, open bool, err error) {
	if p.Engine == nil {
		return container.Pin{}, true, inventory.ErrNoEngine
	}
	if _, err := p.Engine.Image(ctx, name); !container.IsNoImage(err) {
		pin, err = p.Engine.Resolve(ctx, name) // the engine has it, or says why it cannot tell
		return pin, p.lacks[false]() != "", err
	} else if p.Offline {
		return container.Pin{}, true,
			fmt.Errorf("%w, and its registry is not asked: that does benchgraph plan without -offline", err)
	}
	parsed, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		pin, err = p.Engine.Resolve(ctx, name)
		return pin, false, err
	}
	err = p.asker.Ask(ctx, reference.Domain(parsed), func(ctx context.Context) (bool, error) {
		var err error
		pin, err = p.Engine.Resolve(ctx, name)
		failed, ok := errors.AsType[*container.RegistryError](err)
		return !ok || !failed.Passing(), err
	})
	if unverified, ok := errors.AsType[*download.Unverified](err); ok {
		return pin, true, unverified.Err
	}
	return pin, false, err
}

// addImage adds the node of an image, and that of pushing it.
func (b *builder) addImage(ctx context.Context, s *hclspec.Image) error {
	if s.Out != nil {
		b.addOut(s.Block)
		return nil
	}
	t := &image.Task{Maker: b.maker, Spec: s, Dir: b.Spec.Dir, From: b.base(s.From),
		Allowed: fixesOf(b.cures(b.eligible(s.Fixes), s.Address, s.Candidate)), Fixes: b.dueIn(s)}
	t.Rev, t.Source = b.revisionOf(s)
	t.Refs.Add(s.Base)
	t.Refs.Add(s.Install...)
	if s.Overlay != nil {
		t.Refs.Add(s.Overlay.Source, s.Overlay.Over)
	}
	fix.Refer(&t.Refs, t.Fixes)
	t.Refs.AddCommand(s.Verify)
	unknown := b.unresolved[s.From]
	if s.Build != nil {
		var err error
		if unknown, err = b.readContext(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", s.Address, err)
		}
	}
	n := b.add(s.Block, t, t.Refs)
	n.Lacks = b.lacks[false]
	switch {
	case unknown.open: // this machine lacks the image; a plan for another one goes on
		n.Lacks = func() string { return unknown.why }
		alsoLacks(n, b.lacks[false])
	case unknown.why != "" && n.Exclude.Action == "":
		n.Exclude = blocked("%s", unknown.why)
	}
	if s.Push != "" {
		b.addPush(s)
	}
	return nil
}

// dueIn are the fixes that an image is made with, beyond those of the image that it begins with. One that belongs to no
// commit serves all of them, so that a fix that any of them asked for is in it; but what only others begin with is left
// as it is, since they can have the fix themselves.
func (b *builder) dueIn(s *hclspec.Image) []fix.Due {
	candidate := s.Candidate
	if candidate == "" && b.commits[s.Address.Key] != nil {
		candidate = s.Address.Key
	}
	due := b.dueFor(b.eligible(s.Fixes), s.Address, candidate, func(fix string) bool {
		any := func(l hclspec.LearntFix) bool { return isAt(l, s.Address) }
		return b.learnt(fix, s.Address, candidate) || candidate == "" && !b.begun[s.Address] &&
			slices.ContainsFunc(b.Lock.Fixes[fix], any)
	})
	for base := b.images[s.Base]; base != nil; base = b.images[base.Base] {
		due = fix.Without(due, b.dueIn(base))
	}
	return due
}

// revisionOf is the revision that an image is made for, and where it comes from; empty when it is made for none. A path
// of this machine is told to nobody.
func (b *builder) revisionOf(s *hclspec.Image) (rev, source string) {
	repo := hclspec.Address{}
	if c := b.candidates[s.Candidate]; c != nil && s.Candidate != "" {
		rev = c.Rev
		if src := b.source(c.Source); src != nil {
			repo = src.Repo
		}
	} else if c := b.commits[s.Address.Key]; c != nil {
		rev, repo = c.Rev, c.Repo
	}
	if r := b.repoOf(repo); r != nil {
		source = withoutPassword(r.URL)
	}
	return rev, source
}

// buildID is equal for builds that get the same.
func buildID(s *hclspec.ImageBuild) string {
	return fmt.Sprintf("%q", []any{s.Context, s.Dockerfile, s.Args})
}

// readBuild takes in what a build is made from, as it was when it was first looked at.
func (p *facts) readBuild(ctx context.Context, s *hclspec.ImageBuild, own []string) (image.Context, error) {
	id := buildID(s)
	if known, ok := p.seen.builds[id]; ok {
		return known, nil
	}
	b, err := image.ReadContext(ctx, p.Spec.Dir, s, own, p.Stat)
	if err == nil {
		p.seen.builds[id] = b
	}
	return b, err
}

// ownFiles are the files and directories that benchgraph writes.
func (p *facts) ownFiles() []string {
	own := []string{filepath.Clean(p.StateDir), filepath.Clean(p.LockFile)}
	for i := range p.Spec.Reports {
		own = append(own, p.Spec.Path(p.Spec.Reports[i].Dir))
	}
	return own
}

// readContext finds out what an image is built from, and whether one of its bases is not known.
func (b *builder) readContext(ctx context.Context, t *image.Task) (unknown unknownImage, err error) {
	if t.Context, err = b.readBuild(ctx, t.Spec.Build, b.ownFiles()); err != nil {
		return unknown, err
	}
	for _, name := range t.Context.Bases {
		t.Bases = append(t.Bases, b.base(name))
		if base, ok := b.unresolved[name]; ok {
			unknown = base
		}
	}
	return unknown, nil
}

// addPush adds the node that pushes an image.
func (b *builder) addPush(s *hclspec.Image) {
	at := s.Address
	at.Kind = "push"
	b.addAt(at, s.Block, &image.Push{Maker: b.maker, To: s.Push}, shell.Refs{s.Address}).Lacks = b.lacks[false]
}
