// Package image makes container images in steps: the base, the installed packages, and one step for each fix. Every
// changing step makes one image in the engine. Its label is the chain key, the digest of all its inputs. A step whose
// image exists is not repeated, for whichever node. The node's result names the image of the last step.
package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image/inventory"
	"github.com/benchgraph/benchgraph/image/room"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/input"
)

// Maker is the state that all image nodes share: the engine, and the known images in it.
type Maker struct {
	Shells  shell.Config
	Room    *room.Room
	Offline bool // reach no network

	Made  inventory.List // images of benchgraph in the engine
	steps locks          // one at a time for each chain key
	sites sync.Map       // by image ID: directory of its Python packages
}

// Task makes a container image.
type Task struct {
	*Maker
	Refs    input.Refs
	Spec    *hclspec.Image
	Dir     string  // the project's directory, for files of fixes
	From    Base    // the image that Spec.From names
	Context Context // input of a build
	Bases   []Base  // base images in the Dockerfile of a build
	Rev     string  // revision for which the image is made; empty: none
	Source  string  // URL of that revision's repo; empty: none, or a local repo
	Cures   []fix.Cure
	Fixes   []fix.Due
}

// Base is a base image: its name and the digest that the name means.
type Base struct {
	Name, Digest string // empty: unknown
	Size         int64  // bytes that the registry sends; 0: unknown
}

// Ref returns the name of the image for an engine; an image without a registry is named by its ID.
func (b Base) Ref() string {
	if named, err := reference.ParseNormalizedNamed(b.Name); err == nil {
		if pinned, err := reference.WithDigest(reference.TrimNamed(named), digest.Digest(b.Digest)); err == nil {
			return pinned.String()
		}
	}
	return b.Digest
}

func (t *Task) Describe(d *cache.Description) {
	switch {
	case t.Spec.Build != nil:
		t.describeBuild(d)
	case t.Spec.Base != (hclspec.Address{}):
		d.Add("base", t.Refs.Label(t.Spec.Base))
	case t.From.Digest != "":
		d.Add("from", t.From.Digest) // whatever its name
	default:
		d.Add("from", t.Spec.From)
	}
	d.Add("revision", t.Rev)
	for _, wheel := range t.Spec.Install {
		d.Add("install", t.Refs.Label(wheel))
	}
	if o := t.Spec.Overlay; o != nil {
		d.Add("overlay", append([]string{t.Refs.Label(o.Source), t.Refs.Label(o.Over)}, o.Paths...)...)
	}
	fix.Describe(d, t.Refs, t.Fixes)
	t.Refs.DescribeCommand(d, "verify", t.Spec.Verify)
	d.Add("network", strconv.FormatBool(t.Spec.Network))
}

// Kept returns why the engine no longer has the image; "" if it has the image.
func (t *Task) Kept(ctx context.Context, e cache.Entry) (string, error) {
	rec, err := Read(e)
	if err != nil {
		return err.Error(), nil
	}
	has, err := t.Has(ctx, rec.ID)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "the engine does not say whether it has its image", nil
	}
	t.Made.Found(e.Key, rec.ID)
	if !has {
		return "its image is no longer in the engine", nil
	}
	t.Room.Made(t.Spec.Address.String(), rec.ID, rec.Size)
	return "", nil
}

func (t *Task) Run(ctx context.Context, env *engine.Env) error {
	t.Shells.Engine.AwaitBack(ctx)
	m, err := t.begin(ctx, env)
	if err != nil {
		return err
	}
	steps := []func(context.Context) error{m.install, m.overlay}
	for _, f := range t.Fixes {
		steps = append(steps, func(ctx context.Context) error { return m.fix(ctx, f) })
	}
	for _, step := range append(steps, m.addLabels) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if v := t.Spec.Verify; v.Shell != nil || v.Argv != nil {
		m.progress("verify")
		if err := m.verify(ctx, v); err != nil {
			return err
		}
	}
	return m.write()
}

// write writes the record of the finished image.
func (m *making) write() error {
	steps, err := json.Marshal(m.steps)
	if err != nil {
		return err
	}
	rec := Record{
		ID: m.at.ID, Digest: m.base.Digest, Chain: m.chain, Site: m.at.Labels[labelSite], Env: m.at.Env,
		Size: m.at.Size, Steps: steps,
	}
	if rec.Packages, err = m.packages(m.at.Labels); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	m.t.Room.Made(m.t.Spec.Address.String(), rec.ID, rec.Size)
	return os.WriteFile(filepath.Join(m.env.Out, File), append(text, '\n'), 0o644)
}

// packages lists the packages that benchgraph has installed in an image with these labels.
func (m *making) packages(labels map[string]string) (all []shell.Package, err error) {
	text := labels[labelPackages]
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("label %s of image %s: %w", labelPackages, m.at.ID, err)
	}
	return all, nil
}

// Has reports whether the engine has an image of benchgraph. The engine is asked once for a plan.
func (m *Maker) Has(ctx context.Context, id string) (bool, error) {
	err := m.Made.Ask(ctx, m.Shells.Engine)
	return err == nil && m.Made.Has(id), err
}
