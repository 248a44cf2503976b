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

// DigestOf returns the digest of an image by its name; "" if it is unknown.
func DigestOf(l *lockfile.Lock, name string) string {
	if ref, err := reference.ParseNormalizedNamed(name); err == nil {
		if exact, ok := ref.(reference.Digested); ok {
			return exact.Digest().String()
		}
	}
	return l.Images[name].Digest
}

// BaseOf returns the base image with a name, as the lock resolves it.
func BaseOf(l *lockfile.Lock, name string) image.Base {
	return image.Base{Name: name, Digest: DigestOf(l, name), Size: l.Images[name].Size}
}

// UnknownImage is why the digest of a named image is unknown.
type UnknownImage struct {
	Why  string
	Open bool // this machine could ask no registry; another one may
}

// addImage adds the node of an image, and of pushing it.
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
		n.Lacks = func(context.Context) string { return unknown.Why }
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

// dueIn returns the fixes that an image is made with, without those of its base image. An image without a commit serves
// all commits, so it gets fixes learnt for any of them, unless it is a base of other images: these can get the fix
// themselves.
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

// revisionOf returns the revision that an image is made for and the URL of its repo; empty if there is none. Local
// paths are not published.
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

// BuildID returns the same ID for builds with the same inputs.
func BuildID(s *hclspec.ImageBuild) string {
	return fmt.Sprintf("%q", []any{s.Context, s.Dockerfile, s.Args, s.Target})
}

// ReadBuild reads the inputs of an image build. It caches them, as they were when they were first read.
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

// OwnFiles returns the files and directories that benchgraph writes.
func (p *Facts) OwnFiles() []string {
	own := []string{filepath.Clean(p.StateDir), filepath.Clean(p.LockFile)}
	for i := range p.Spec.Reports {
		own = append(own, p.Spec.Path(p.Spec.Reports[i].Dir))
	}
	return own
}

// readContext reads the inputs of an image build. unknown is set if the digest of a base image is unknown.
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

// shareImages finds out which images are used together and what they consist of. A node whose images can never fit on
// the disk is blocked.
func (b *builder) shareImages() {
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
			alsoLacks(n, func(ctx context.Context) string { return b.Room.TooSmall(ctx, images) })
		}
	}
}

// partsOf returns the parts on the disk of which an image consists.
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
