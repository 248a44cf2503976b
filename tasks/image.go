package tasks

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/distribution/reference"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/image/room"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/source/download"
)

// DigestOf is the digest that the name of an image means; empty: not known.
func DigestOf(l *lockfile.Lock, name string) string {
	if ref, err := reference.ParseNormalizedNamed(name); err == nil {
		if exact, ok := ref.(reference.Digested); ok {
			return exact.Digest().String()
		}
	}
	return l.Images[name].Digest
}

// BaseOf is what the name of an image means.
func BaseOf(l *lockfile.Lock, name string) image.Base {
	return image.Base{Name: name, Digest: DigestOf(l, name), Size: l.Images[name].Size}
}

// UnknownImage says why nobody knows which image a name means.
type UnknownImage struct {
	Why  string
	Open bool // nobody could be asked from here: another machine may know
}

// addImage adds the node of an image, and that of pushing it.
func (b *builder) addImage(ctx context.Context, s *hclspec.Image) error {
	if s.Out != nil {
		b.addOut(s.Block)
		return nil
	}
	t := &image.Task{Maker: b.Maker, Spec: s, Dir: b.Spec.Dir, From: BaseOf(b.Lock, s.From),
		Cures: b.cures(b.eligible(s.Fixes), s.Address, s.Candidate), Fixes: b.dueIn(s)}
	t.Rev, t.Source = b.revisionOf(s)
	t.Refs.Add(s.Base)
	t.Refs.Add(s.Install...)
	if s.Overlay != nil {
		t.Refs.Add(s.Overlay.Source, s.Overlay.Over)
	}
	fix.Refer(&t.Refs, t.Fixes)
	t.Refs.AddCommand(s.Verify)
	unknown := b.Unresolved[s.From]
	if s.Build != nil {
		var err error
		if unknown, err = b.readContext(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", s.Address, err)
		}
	}
	n := b.add(s.Block, t, t.Refs)
	n.Lacks = b.Lacks[false]
	switch {
	case unknown.Open: // this machine lacks the image; a plan for another one goes on
		n.Lacks = func() string { return unknown.Why }
		alsoLacks(n, b.Lacks[false])
	case unknown.Why != "" && n.Exclude.Action == "":
		n.Exclude = blocked("%s", unknown.Why)
	}
	if s.Push != "" {
		at := s.Address
		at.Kind = "push"
		b.addAt(at, s.Block, &image.Push{Maker: b.Maker, To: s.Push}, input.Refs{s.Address}).Lacks = b.Lacks[false]
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
		any := func(l lockfile.Fix) bool { return isAt(l, s.Address) }
		return b.Learnt(fix, s.Address, candidate) || candidate == "" && !b.begun[s.Address] &&
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
	if r := RepoOf(b.Spec, repo); r != nil {
		source = download.WithoutPassword(r.URL)
	}
	return rev, source
}

// BuildID is equal for builds that get the same.
func BuildID(s *hclspec.ImageBuild) string {
	return fmt.Sprintf("%q", []any{s.Context, s.Dockerfile, s.Args, s.Target})
}

// ReadBuild takes in what a build is made from, as it was when it was first looked at.
func (p *Facts) ReadBuild(ctx context.Context, s *hclspec.ImageBuild, own []string) (image.Context, error) {
	id := BuildID(s)
	if known, ok := p.Seen.Builds[id]; ok {
		return known, nil
	}
	b, err := image.ReadContext(ctx, p.Spec.Dir, s, own, p.Stat)
	if err == nil {
		p.Seen.Builds[id] = b
	}
	return b, err
}

// OwnFiles are the files and directories that benchgraph writes.
func (p *Facts) OwnFiles() []string {
	own := []string{filepath.Clean(p.StateDir), filepath.Clean(p.LockFile)}
	for i := range p.Spec.Reports {
		own = append(own, p.Spec.Path(p.Spec.Reports[i].Dir))
	}
	return own
}

// readContext finds out what an image is built from, and whether one of its bases is not known.
func (b *builder) readContext(ctx context.Context, t *image.Task) (unknown UnknownImage, err error) {
	if t.Context, err = b.ReadBuild(ctx, t.Spec.Build, b.OwnFiles()); err != nil {
		return unknown, err
	}
	for _, name := range t.Context.Bases {
		t.Bases = append(t.Bases, BaseOf(b.Lock, name))
		if base, ok := b.Unresolved[name]; ok {
			unknown = base
		}
	}
	return unknown, nil
}

// shareImages finds out which images are used together and what they are made from. What can never fit is blocked,
// with all that uses it.
func (b *builder) shareImages(ctx context.Context) {
	if len(b.Spec.Images) == 0 {
		return
	}
	parts := map[string][]room.Part{}
	for i := range b.Spec.Images {
		s := &b.Spec.Images[i]
		parts[s.Address.String()] = b.partsOf(s)
	}
	b.Parts, b.Spans = parts, room.Spans(b.list)
	for _, n := range b.list {
		if images := room.Used(n); len(images) > 0 {
			alsoLacks(n, func() string { return b.Room.TooSmall(ctx, images) })
		}
	}
}

// partsOf is all that an image is made from.
func (b *builder) partsOf(s *hclspec.Image) []room.Part {
	parts := []room.Part{b.Room.Own(s.Address.String())}
	if base := b.images[s.Base]; base != nil {
		parts = append(parts, b.partsOf(base)...)
	}
	if t, ok := b.nodes[s.Address].Task.(*image.Task); ok {
		bases := t.Bases
		if t.From.Digest != "" {
			bases = append(slices.Clip(bases), t.From)
		}
		for _, base := range bases {
			parts = append(parts, b.Room.Base(base.Ref(), base.Size))
		}
	}
	return parts
}
