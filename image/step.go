package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image/room"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Labels of images, beside those with which the engine finds them.
const (
	labelSite     = "io.benchgraph.site"     // directory of its Python packages
	labelPackages = "io.benchgraph.packages" // installed packages, as a list of shell.Package
	labelOCI      = "org.opencontainers.image."
)

type making struct {
	t      *Task
	engine *container.Engine
	env    *engine.Env
	sh     *shell.Shell // for the output of commands
	ran    *transcript.Transcript
	base   Base
	at     container.Image // image of the steps so far
	chain  string          // its chain key
	steps  []stepRecord
}

// stepRecord is the record of one step, for readers of a result.
type stepRecord struct {
	What     string   `json:"what"`
	Chain    string   `json:"chain"`
	ID       string   `json:"id"`
	Versions []string `json:"versions,omitempty"` // resolved versions of pins
	Skipped  string   `json:"skipped,omitempty"`  // why nothing was done
}

// begin makes or finds the base image.
func (t *Task) begin(ctx context.Context, env *engine.Env) (*making, error) {
	m := &making{t: t, engine: t.Shells.Engine, env: env, ran: transcript.Of(env)}
	var err error
	m.sh, err = t.Shells.Open(env, t.Refs, shell.Place{Dir: filepath.Join(env.Work, "dir"),
		Out: filepath.Join(env.Work, "out")})
	if err != nil {
		return nil, err
	}
	m.sh.Cures = func() []classify.Rule { return fix.Detectors(t.Cures, t.Fixes) }
	switch base := t.Spec.Base; {
	case t.Spec.Build != nil:
		err = m.build(ctx)
	case base.Kind == "image":
		err = m.inherit(ctx, base)
	case base != (hclspec.Address{}):
		err = m.load(ctx, base)
	default:
		err = m.pull(ctx)
	}
	return m, err
}

// pull gets the image that the lock file pins, from a registry or from the engine itself.
func (m *making) pull(ctx context.Context) error {
	m.base = m.t.From
	if m.base.Digest == "" {
		return &engine.Failure{Retry: &engine.Retry{Attempts: 1},
			Failure: failure.Failure{Class: failure.Infra, Rule: "image_unpinned", Stage: "fetch",
				Message: "the digest of image " + m.base.Name + " is unknown",
				Remedy:  "plan again where the registry, or an engine that has it, can be reached"}}
	}
	img, err := m.ensureBase(ctx, m.base)
	if err != nil {
		return err
	}
	m.at, m.chain = img, m.base.Digest
	m.ran.Made(img.ID, "pull", m.base.Ref(), img.ID)
	m.say("from %s: %s\n", m.base.Name, m.base.Digest)
	m.note(stepRecord{What: "from " + m.base.Name})
	return nil
}

// ensureBase returns a pinned image, and pulls it if the engine does not have it.
func (m *making) ensureBase(ctx context.Context, base Base) (container.Image, error) {
	for _, ref := range []string{base.Ref(), base.Digest} { // an image without a registry is pinned by its ID
		if img, err := m.engine.Image(ctx, ref); err == nil {
			return img, nil
		}
	}
	if m.t.Offline {
		return container.Image{}, &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: "offline",
			Stage: "fetch", Message: base.Name + " is not in the engine, and -offline forbids to fetch it"}}
	}
	m.progress("fetch")
	img, err := m.t.Room.Within(ctx, m.env.Log, m.t.Spec.Address.String(), m.t.Room.Base(base.Ref(), base.Size),
		func() (container.Image, error) {
			return m.engine.Pull(ctx, base.Name, base.Digest, func(p container.Progress) {
				m.env.Emit(engine.Event{Type: engine.NodeProgress, Phase: p.Phase,
					Data: map[string]any{"done": p.Bytes, "total": p.Total}})
			})
		})
	return img, diagnosis.EngineFailure("fetch", err)
}

// inherit begins with the image of another node.
func (m *making) inherit(ctx context.Context, base hclspec.Address) error {
	rec, err := Read(m.t.Refs.Input(m.env, base).Entry)
	if err != nil {
		return err
	}
	if m.at, err = m.engine.Image(ctx, rec.ID); err != nil {
		return diagnosis.EngineFailure("start", err)
	}
	m.base = Base{Name: m.at.Labels[labelOCI+"base.name"], Digest: rec.Digest}
	m.chain = rec.Chain
	m.note(stepRecord{What: "from " + base.String()})
	return nil
}

// load imports the tar of a root file system.
func (m *making) load(ctx context.Context, base hclspec.Address) error {
	in := m.t.Refs.Input(m.env, base)
	if len(in.Files) != 1 {
		return buildFailure("no_rootfs", fmt.Sprintf("%s made %d files: an image begins with one, the tar of a root "+
			"file system", base, len(in.Files)), "name one file in outputs")
	}
	return m.step(ctx, "from "+base.String(), func(d *cache.Description) {
		d.Add("rootfs", in.Files[0].SHA256)
	}, func(ctx context.Context, labels map[string]string) (container.Image, error) {
		f, err := os.Open(workdir.OnlyFile(in.Entry))
		if err != nil {
			return container.Image{}, err
		}
		defer f.Close()
		m.progress("import")
		img, err := m.engine.Import(ctx, f, labels)
		m.ran.Made(img.ID, "docker", "import", f.Name())
		return img, err
	})
}

// buildFailure returns the failure of a step that no retry can mend.
func buildFailure(rule, message, remedy string) error {
	return &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: rule, Stage: "build",
		Message: message, Remedy: remedy}}
}

// chainKey returns the chain key of a step for a revision, on an image with the chain key parent.
func chainKey(parent, rev string, describe func(*cache.Description)) cache.Key {
	d := cache.Describe("image step")
	d.Add("parent", parent)
	d.Add("revision", rev)
	describe(d)
	return d.Key()
}

// step ensures that the engine has the image of a step: an image with the chain key, or else the image that do makes
// with the labels.
func (m *making) step(ctx context.Context, what string, describe func(*cache.Description),
	do func(ctx context.Context, labels map[string]string) (container.Image, error)) error {
	key := chainKey(m.chain, m.t.Rev, describe).String()
	leave, err := m.t.steps.enter(ctx, key)
	if err != nil {
		return err
	}
	defer leave()
	if err := m.t.Made.Ask(ctx, m.engine); err != nil {
		m.t.Made.Forget() // the first answer was from the time of the plan
		if err := m.t.Made.Ask(ctx, m.engine); err != nil {
			return diagnosis.EngineFailure("start", err)
		}
	}
	img, found, err := m.t.Made.With(ctx, m.engine, key, m.at)
	if err != nil {
		return diagnosis.EngineFailure("start", err)
	}
	at := m.t.Spec.Address.String()
	if found {
		m.t.Room.Uses(at, img, room.Part{})
		m.say("%s: found in the engine (%s)\n", what, shortID(img.ID))
		m.ran.Section("", what+": found in the engine, and not made again", false)
	} else {
		m.say("%s\n", what)
		img, err = m.t.Room.Within(ctx, m.env.Log, at, m.t.Room.Own(at), func() (container.Image, error) {
			return do(ctx, m.labels(key))
		})
		if err != nil {
			return diagnosis.EngineFailure("build", err)
		}
		m.t.Made.Add(img)
		m.say("%s made image %s, %d bytes in all\n", what, shortID(img.ID), img.Size)
	}
	m.at, m.chain = img, key
	m.note(stepRecord{What: what})
	return nil
}

func (m *making) note(s stepRecord) {
	s.Chain, s.ID = m.chain, m.at.ID
	m.steps = append(m.steps, s)
}

// labels returns the labels of an image with a chain key.
func (m *making) labels(key string) map[string]string {
	all := map[string]string{container.LabelKey: key, container.LabelNode: m.t.Spec.Address.String()}
	for name, value := range map[string]string{
		"revision": m.t.Rev, "source": m.t.Source, "base.name": m.base.Name, "base.digest": m.base.Digest,
	} {
		if value != "" {
			all[labelOCI+name] = value
		}
	}
	for _, name := range []string{labelSite, labelPackages} {
		if value := m.at.Labels[name]; value != "" {
			all[name] = value
		}
	}
	return all
}

// addLabels ensures that the finished image is one of benchgraph's: an image without changing steps gets at least the
// labels.
func (m *making) addLabels(ctx context.Context) error {
	if m.at.Labels[container.LabelKey] == m.chain {
		return nil
	}
	return m.step(ctx, "labels", func(d *cache.Description) {
		d.Add("labels")
	}, func(ctx context.Context, labels map[string]string) (container.Image, error) {
		return m.blank(ctx, nil, nil, labels)
	})
}

// locks serialises the work at a step. The second caller finds the image of the first.
type locks struct{ held sync.Map } // by chain key: a channel that is full during the work

func (l *locks) enter(ctx context.Context, key string) (leave func(), err error) {
	held, _ := l.held.LoadOrStore(key, make(chan struct{}, 1))
	lock := held.(chan struct{})
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *making) say(format string, args ...any) { m.sh.Say(format, args...) }

func (m *making) progress(phase string) {
	m.env.Emit(engine.Event{Type: engine.NodeProgress, Phase: phase})
}

// shortID returns an image's ID in its short form.
func shortID(id string) string {
	hex := strings.TrimPrefix(id, "sha256:")
	return hex[:min(len(hex), 12)]
}
