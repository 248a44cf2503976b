package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/docker"
	"github.com/benchgraph/benchgraph/internal/fix"
	"github.com/benchgraph/benchgraph/internal/shell"
)

// An image is made in steps: what it begins with, what is installed, one for each fix. Every changing step makes one image
// in the engine, which carries the digest of all that it was made from as a label: its chain key. A step whose image is
// there is not done again, whoever made it and for which node. The finished image is what the last step left; the node's
// result says which one it is.

// imageTask makes a container image.
type imageTask struct {
	p       *Project
	refs    shell.Refs
	spec    *hclspec.Image
	digest  string            // of what From means; empty: not known
	context buildContext      // of a build
	bases   []baseImage       // of a build: what its Dockerfile begins with
	rev     string            // revision that it is made for; empty: none
	source  string            // where that revision comes from; empty: not to be told
	allowed []hclspec.Address // fixes
	fixes   []fix.Due
}

// baseImage is a name in a Dockerfile, and which image it means.
type baseImage struct{ name, digest string }

func (t *imageTask) Describe(d *cache.Description) {
	switch {
	case t.spec.Build != nil:
		t.describeBuild(d)
	case t.spec.Base != (hclspec.Address{}):
		d.Add("base", t.refs.Label(t.spec.Base))
	case t.digest != "":
		d.Add("from", t.digest) // whatever its name is
	default:
		d.Add("from", t.spec.From)
	}
	d.Add("revision", t.rev)
	for _, wheel := range t.spec.Install {
		d.Add("install", t.refs.Label(wheel))
	}
	fix.Describe(d, t.refs, t.fixes)
	t.refs.DescribeCommand(d, "verify", t.spec.Verify)
	d.Add("network", strconv.FormatBool(t.spec.Network))
}

// Kept says whether the engine still has the image.
func (t *imageTask) Kept(ctx context.Context, e cache.Entry) (string, error) {
	rec, err := readImage(e)
	if err != nil {
		return err.Error(), nil
	}
	known, err := t.p.made.list(ctx, t.p.Engine)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "the engine does not say whether it has its image", nil
	case !known.has(rec.ID):
		return "its image is no longer in the engine", nil
	}
	t.p.room.Made(t.spec.Address.String(), rec.ID, rec.Size)
	known.found(e.Key, rec.ID)
	return "", nil
}

func (t *imageTask) Run(ctx context.Context, env *engine.Env) error {
	m, err := t.begin(ctx, env)
	if err != nil {
		return err
	}
	if err := m.install(ctx); err != nil {
		return err
	}
	for _, f := range t.fixes {
		if err := m.fix(ctx, f); err != nil {
			return err
		}
	}
	if err := m.own(ctx); err != nil {
		return err
	}
	if v := t.spec.Verify; v.Shell != nil || v.Argv != nil {
		m.progress("verify")
		if err := m.verify(ctx, v); err != nil {
			return err
		}
	}
	return m.write()
}

// write leaves what is known of the finished image.
func (m *making) write() error {
	steps, err := json.Marshal(m.steps)
	if err != nil {
		return err
	}
	rec := imageRecord{
		ID: m.at.ID, Digest: m.base.digest, Chain: m.chain, Site: m.at.Labels[labelSite], Env: m.at.Env, Size: m.at.Size, Steps: steps,
	}
	if rec.Packages, err = m.packages(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	m.p.room.Made(m.t.spec.Address.String(), rec.ID, rec.Size)
	return os.WriteFile(filepath.Join(m.env.Out, imageFile), append(text, '\n'), 0o644)
}

// packages are what benchgraph installed in the image as it is so far.
func (m *making) packages() (all []shell.Package, err error) {
	text := m.at.Labels[labelPackages]
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("label %s of image %s: %w", labelPackages, m.at.ID, err)
	}
	return all, nil
}

// addImage adds the node of an image, and that of pushing it.
func (b *builder) addImage(ctx context.Context, s *hclspec.Image) error {
	t := &imageTask{p: b.Project, spec: s, digest: b.digestOf(s.From)}
	t.rev, t.source = b.revisionOf(s)
	t.allowed = b.eligible(s.Fixes)
	t.fixes = b.dueIn(s)
	t.refs.Add(s.Base)
	t.refs.Add(s.Install...)
	fix.Refer(&t.refs, t.fixes)
	t.refs.AddCommand(s.Verify)
	problem := b.unresolved[s.From]
	if s.Build != nil {
		var err error
		if problem, err = b.readContext(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", s.Address, err)
		}
	}
	n := b.add(s.Block, t, t.refs)
	n.Lacks = b.lacks
	if problem != "" && n.Exclude.Action == "" {
		n.Exclude = blocked("%s", problem)
	}
	if s.Push != "" {
		b.addPush(s)
	}
	return nil
}

// dueIn are the fixes that an image is made with, beyond those of the image that it begins with. One that belongs to no
// commit serves all of them, so that a fix that any of them asked for is in it; but what only others begin with is left as
// it is, since they can have the fix themselves.
func (b *builder) dueIn(s *hclspec.Image) []fix.Due {
	candidate := s.Candidate
	if candidate == "" && b.commits[s.Address.Key] != nil {
		candidate = s.Address.Key
	}
	due := b.dueFor(b.eligible(s.Fixes), candidate, func(fix string) bool {
		return b.learnt(fix, candidate) || candidate == "" && !b.begun[s.Address] && len(b.Lock.Fixes[fix]) > 0
	})
	for base := b.images[s.Base]; base != nil; base = b.images[base.Base] {
		due = fix.Without(due, b.dueIn(base))
	}
	return due
}

// revisionOf is the revision that an image is made for, and where it comes from; empty when it is made for none. A path of
// this machine is told to nobody.
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
	for i := range b.Spec.Repos {
		if b.Spec.Repos[i].Address == repo {
			source = withoutPassword(b.Spec.Repos[i].URL)
		}
	}
	return rev, source
}

// images are the images that benchgraph made, as the engine lists them: asked once for a plan, and added to as more are made.
type images struct {
	mu    sync.Mutex
	asked bool
	err   error
	byKey map[string]docker.Image // by chain key
	ids   map[string]bool
	of    map[cache.Key]string // by key of a result: the ID of its image, which was asked for
}

// forget makes the next question go to the engine.
func (i *images) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = false
}

// list asks the engine, unless it was asked.
func (i *images) list(ctx context.Context, e *docker.Engine) (*images, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.asked {
		return i, i.err
	}
	i.byKey, i.ids = map[string]docker.Image{}, map[string]bool{}
	if e == nil {
		return i, errNoEngine
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	list, err := e.Images(ctx)
	for n := 1; n < 3 && err != nil && docker.IsNotFound(err); n++ {
		list, err = e.Images(ctx) // an image was removed while the engine listed it
	}
	for _, img := range list {
		i.byKey[img.Labels[docker.LabelKey]] = img
		i.ids[img.ID] = true
	}
	i.asked, i.err = true, err
	return i, err
}

// listPatience bounds the wait for the list of images: every plan waits for it.
const listPatience = time.Minute

func (i *images) has(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ids[id]
}

// found notes which image a result stands for.
func (i *images) found(result cache.Key, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.of == nil {
		i.of = map[cache.Key]string{}
	}
	i.of[result] = id
}

// idOf is the image that a result stands for; empty: nobody asked.
func (i *images) idOf(result cache.Key) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.of[result]
}

// add notes an image that was made.
func (i *images) add(img docker.Image) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byKey == nil {
		i.byKey, i.ids = map[string]docker.Image{}, map[string]bool{}
	}
	i.byKey[img.Labels[docker.LabelKey]] = img
	i.ids[img.ID] = true
}

// with finds the image with a chain key, and makes sure that the engine has it now.
func (i *images) with(ctx context.Context, e *docker.Engine, key string) (docker.Image, bool, error) {
	i.mu.Lock()
	known, ok := i.byKey[key]
	i.mu.Unlock()
	if !ok {
		return docker.Image{}, false, nil
	}
	img, err := e.Image(ctx, known.ID)
	if docker.IsNoImage(err) {
		return docker.Image{}, false, nil
	}
	return img, err == nil && img.Labels[docker.LabelKey] == key, err
}

// shortID is an image's ID as people write it.
func shortID(id string) string { return short(strings.TrimPrefix(id, "sha256:")) }
