package tasks

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/docker"
)

// Labels of images beside those by which the engine finds them.
const (
	labelSite     = "io.benchgraph.site"     // directory in which its Python finds packages
	labelPackages = "io.benchgraph.packages" // what was installed, as a list of imagePackage
	labelOCI      = "org.opencontainers.image."
)

// making is an image in the making.
type making struct {
	t     *imageTask
	p     *Project
	env   *engine.Env
	sh    *shell // for what commands say
	base  baseImage
	at    docker.Image // what the steps so far have made
	chain string       // its chain key
	steps []imageStep
}

// imageStep is one step, for readers of a result.
type imageStep struct {
	What     string   `json:"what"`
	Chain    string   `json:"chain"`
	ID       string   `json:"id"`
	Versions []string `json:"versions,omitempty"` // what pins were resolved to
	Skipped  string   `json:"skipped,omitempty"`  // why nothing was done
}

// begin finds or makes what the image begins with.
func (t *imageTask) begin(ctx context.Context, env *engine.Env) (*making, error) {
	m := &making{t: t, p: t.p, env: env}
	var err error
	if m.sh, err = t.p.newShell(env, t.refs, filepath.Join(env.Work, "dir"), filepath.Join(env.Work, "out")); err != nil {
		return nil, err
	}
	m.sh.fixes, m.sh.applied = t.allowed, t.fixes
	switch base := t.spec.Base; {
	case t.spec.Build != nil:
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

// pull takes the image of a registry, or the engine's own, that the lock file pins.
func (m *making) pull(ctx context.Context) error {
	m.base = baseImage{m.t.spec.From, m.t.digest}
	if m.base.digest == "" {
		return &engine.Failure{Retry: &engine.Retry{Attempts: 1}, Failure: cache.Failure{Class: cache.Infra, Rule: "image_unpinned", Stage: "fetch",
			Message: "nothing says which image " + m.base.name + " is", Remedy: "plan again where the registry, or an engine that has it, can be reached"}}
	}
	img, err := m.fetched(ctx, m.base)
	if err != nil {
		return err
	}
	m.at, m.chain = img, m.base.digest
	m.say("from %s: %s\n", m.base.name, m.base.digest)
	m.note(imageStep{What: "from " + m.base.name})
	return nil
}

// fetched brings a pinned image into the engine.
func (m *making) fetched(ctx context.Context, base baseImage) (docker.Image, error) {
	if img, err := m.p.Engine.Image(ctx, base.digest); err == nil { // what no registry knows is pinned by its ID
		return img, nil
	}
	if m.p.Offline {
		return docker.Image{}, &engine.Failure{Failure: cache.Failure{Class: cache.Infra, Rule: "offline", Stage: "fetch",
			Message: base.name + " is not in the engine, and -offline forbids to fetch it"}}
	}
	m.progress("fetch")
	img, err := m.p.room.within(ctx, m.env.Log, m.t.spec.Address.String(), m.p.basePart(base), func() (docker.Image, error) {
		return m.p.Engine.Pull(ctx, base.name, base.digest, func(p docker.Progress) {
			m.env.Emit(engine.Event{Type: engine.NodeProgress, Phase: p.Phase, Data: map[string]any{"done": p.Bytes, "total": p.Total}})
		})
	})
	return img, engineFailure("fetch", err)
}

// inherit begins with the image of another node.
func (m *making) inherit(ctx context.Context, base hclspec.Address) error {
	rec, err := readImage(m.t.refs.input(m.env, base).Entry)
	if err != nil {
		return err
	}
	if m.at, err = m.p.Engine.Image(ctx, rec.ID); err != nil {
		return engineFailure("start", err)
	}
	m.base = baseImage{m.at.Labels[labelOCI+"base.name"], rec.Digest}
	m.chain = rec.Chain
	m.note(imageStep{What: "from " + base.String()})
	return nil
}

// load imports the tar of a root file system.
func (m *making) load(ctx context.Context, base hclspec.Address) error {
	in := m.t.refs.input(m.env, base)
	if len(in.Files) != 1 {
		return &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Rule: "no_rootfs", Stage: "build",
			Message: fmt.Sprintf("%s made %d files: an image begins with one, the tar of a root file system", base, len(in.Files)), Remedy: "name one file in outputs"}}
	}
	return m.step(ctx, "from "+base.String(), func(d *cache.Description) { d.Add("rootfs", in.Files[0].SHA256) }, func(ctx context.Context, labels map[string]string) (string, error) {
		f, err := os.Open(onlyFile(in.Entry))
		if err != nil {
			return "", err
		}
		defer f.Close()
		m.progress("import")
		img, err := m.p.Engine.Import(ctx, f, labels, docker.Config{})
		return img.ID, err
	})
}

// step makes sure that the engine has the image that a step leads to: one that carries the chain key, or else what do makes.
// What do returns is the ID of an image with the labels; empty: the step changes nothing.
func (m *making) step(ctx context.Context, what string, describe func(*cache.Description), do func(ctx context.Context, labels map[string]string) (string, error)) error {
	d := cache.Describe("image step")
	d.Add("parent", m.chain)
	d.Add("revision", m.t.rev)
	describe(d)
	key := d.Key().String()
	leave, err := m.p.steps.enter(ctx, key)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := m.p.made.list(ctx, m.p.Engine); err != nil {
		return engineFailure("start", err)
	}
	img, found, err := m.p.made.with(ctx, m.p.Engine, key)
	if err != nil {
		return engineFailure("start", err)
	}
	at := m.t.spec.Address.String()
	if found {
		m.p.room.uses(at, img, part{})
		m.say("%s: found in the engine (%s)\n", what, shortID(img.ID))
	} else {
		m.say("%s\n", what)
		img, err = m.p.room.within(ctx, m.env.Log, at, m.p.room.ownPart(at), func() (docker.Image, error) {
			id, err := do(ctx, m.labels(key))
			if err != nil || id == "" {
				return docker.Image{}, err
			}
			return m.p.Engine.Image(ctx, id)
		})
		if err != nil {
			return engineFailure("build", err)
		}
		if img.ID == "" {
			return nil
		}
		m.p.made.add(img)
		m.say("%s made image %s, %d bytes in all\n", what, shortID(img.ID), img.Size)
	}
	m.at, m.chain = img, key
	m.note(imageStep{What: what})
	return nil
}

// note records a step.
func (m *making) note(s imageStep) {
	s.Chain, s.ID = m.chain, m.at.ID
	m.steps = append(m.steps, s)
}

// labels are those of an image with this chain key.
func (m *making) labels(key string) map[string]string {
	all := map[string]string{docker.LabelKey: key, docker.LabelNode: m.t.spec.Address.String()}
	for name, value := range map[string]string{
		"revision": m.t.rev, "source": m.t.source, "base.name": m.base.name, "base.digest": m.base.digest,
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

// own makes sure that the finished image is one of benchgraph's: what nothing was done to gets at least the labels.
func (m *making) own(ctx context.Context) error {
	if m.at.Labels[docker.LabelKey] == m.chain {
		return nil
	}
	return m.step(ctx, "labels", func(d *cache.Description) { d.Add("labels") }, func(ctx context.Context, labels map[string]string) (string, error) {
		return m.blank(ctx, nil, nil, labels)
	})
}

// locks lets one at a time work at a step: whoever comes second finds what the first has made.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

func (l *locks) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		l.mu.Lock()
		if l.held == nil {
			l.held = map[string]chan struct{}{}
		}
		other, taken := l.held[key]
		if !taken {
			done := make(chan struct{})
			l.held[key] = done
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, key)
				l.mu.Unlock()
				close(done)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// buildCaps are what installers want to do: give files to somebody, and take on another user.
func buildCaps() []string {
	return []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID"}
}

// changing is a command that makes a step.
type changing struct {
	stage   string
	argv    []string
	says    string    // what of it the log shows; empty: all
	files   io.Reader // a tar that is unpacked at / before; nil: none
	mounts  []executor.Mount
	network bool
	env     []string                                                                    // that the image keeps
	proof   func(ctx context.Context, container string, labels map[string]string) error // before it becomes an image; nil: none
}

// errNoEffect is the error of a step that changed nothing.
var errNoEffect = errors.New("it changed nothing")

// change runs a command in a container of the image as it is so far, and makes an image of what it leaves.
func (m *making) change(ctx context.Context, c changing, labels map[string]string) (id string, err error) {
	process, out, err := m.start(ctx, c)
	if err != nil {
		return "", err
	}
	defer out.close()
	box, ok := process.(executor.Contained)
	if !ok {
		_, _ = process.Stop()
		return "", errors.New("what runs the step is in no container")
	}
	defer func() { err = errors.Join(err, m.p.Engine.Remove(context.WithoutCancel(ctx), box.Container())) }()
	status, err := process.Wait(ctx)
	switch {
	case err != nil:
		return "", err
	case status.Code == exitNoEffect:
		return "", fmt.Errorf("%w: %s", errNoEffect, strings.TrimPrefix(lastLine(out), noEffect))
	case !status.OK():
		return "", m.sh.failure(c.stage, out, ended(status))
	}
	if c.proof != nil {
		if err := c.proof(ctx, box.Container(), labels); err != nil {
			return "", err
		}
	}
	return m.p.Engine.Commit(ctx, box.Container(), m.committed(c, labels))
}

// owner says by which labels what it makes is known as this process's.
type owner interface{ Labels() map[string]string }

// blank makes an image of files, in which nothing is run.
func (m *making) blank(ctx context.Context, files io.Reader, proof func(ctx context.Context, container string, labels map[string]string) error, labels map[string]string) (id string, err error) {
	name := "benchgraph-" + strings.ToLower(rand.Text())
	config := &container.Config{Image: m.at.ID, Cmd: []string{"-"}, Labels: m.nodeLabel()}
	if o, ok := m.p.Containers.(owner); ok {
		maps.Copy(config.Labels, o.Labels())
	}
	defer func() { err = errors.Join(err, m.p.Engine.Remove(context.WithoutCancel(ctx), name)) }()
	if err := m.p.Engine.Create(ctx, name, config, &container.HostConfig{NetworkMode: "none"}); err != nil {
		return "", err
	}
	if files != nil {
		if err := m.p.Engine.CopyTo(ctx, name, files); err != nil {
			return "", err
		}
	}
	if proof != nil {
		if err := proof(ctx, name, labels); err != nil {
			return "", err
		}
	}
	return m.p.Engine.Commit(ctx, name, m.committed(changing{}, labels))
}

// committed is what the image of a step says of itself: what the image before said, and the step's labels and variables. What
// the step's own command was is no part of it.
func (m *making) committed(c changing, labels map[string]string) container.CommitOptions {
	config := &container.Config{
		User: m.at.User, WorkingDir: m.at.Dir, Entrypoint: append([]string{}, m.at.Entrypoint...), Cmd: m.at.Command, Env: c.env, Labels: map[string]string{},
	}
	if len(config.Entrypoint) == 0 && len(config.Cmd) == 0 {
		config.Cmd = []string{"sh"}
	}
	for name, value := range labels {
		config.Labels[name] = value
	}
	// The container's own labels would be taken over.
	config.Labels[docker.LabelState], config.Labels[docker.LabelOwner] = "", ""
	return container.CommitOptions{Config: config}
}

// start starts a changing command.
func (m *making) start(ctx context.Context, c changing) (executor.Process, *captured, error) {
	out := m.sh.capture()
	m.say("$ %s\n", strings.TrimSpace(cmp.Or(c.says, strings.Join(c.argv, " "))))
	process, err := m.p.Containers.Start(ctx, executor.Command{
		Argv: c.argv, Dir: "/", Stdout: out.out, Stderr: out.out,
		Container: &executor.Container{
			Image: m.at.ID, Labels: m.nodeLabel(), Mounts: c.mounts, Files: c.files, User: "0:0", Caps: buildCaps(), Outward: c.network || m.t.spec.Network, Keep: true,
		},
	})
	if err != nil {
		out.close()
		return nil, nil, m.notRun(ctx, err, c.stage)
	}
	return process, out, nil
}

func (m *making) nodeLabel() map[string]string {
	return map[string]string{docker.LabelNode: m.t.spec.Address.String()}
}

// notRun is the failure of a command that could not be started in the image.
func (m *making) notRun(ctx context.Context, err error, stage string) error {
	var start *executor.StartError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &start):
		return &engine.Failure{Err: err, Failure: cache.Failure{Class: cache.Permanent, Rule: "not_started", Stage: stage, Message: err.Error()}}
	}
	return engineFailure(stage, err)
}

// look runs a command in a container that is thrown away, hardened and without a network unless the block says otherwise, and
// returns what it prints on standard output.
func (m *making) look(ctx context.Context, stage string, argv []string, mounts []executor.Mount, env []string) (string, error) {
	dir, err := os.MkdirTemp(m.env.Work, "look-")
	if err == nil {
		err = os.Chmod(dir, 0o777) // the image says which user it is
	}
	if err != nil {
		return "", err
	}
	out := m.sh.capture()
	defer out.close()
	m.say("$ %s\n", strings.Join(argv, " "))
	var stdout strings.Builder
	status, err := executor.Run(ctx, m.p.Containers, executor.Command{
		Argv: argv, Dir: insideWork, Env: env, Stdout: io.MultiWriter(&stdout, out.out), Stderr: out.out,
		Container: &executor.Container{
			Image: m.at.ID, Labels: m.nodeLabel(), Mounts: append(slices.Clip(mounts), executor.Mount{Host: dir, Inside: insideWork, Writable: true}),
			Outward: m.t.spec.Network,
		},
	})
	switch {
	case err != nil:
		return "", m.notRun(ctx, err, stage)
	case !status.OK():
		return "", m.sh.failure(stage, out, ended(status))
	}
	return stdout.String(), nil
}

// verify runs a command that must pass in the image.
func (m *making) verify(ctx context.Context, c hclspec.Command) error {
	argv, mounts, err := m.command(ctx, c)
	if err != nil {
		return err
	}
	_, err = m.look(ctx, "verify", argv, mounts, nil)
	var f *engine.Failure
	if errors.As(err, &f) && f.Rule == "" && f.Stage == "verify" {
		f.Rule = verifyFailed
	}
	return err
}

// verifyFailed is the rule of an image that does not pass what must hold in it.
const verifyFailed = "verify_failed"

// command makes the argv of a command of the file, and the mounts of what it refers to.
func (m *making) command(ctx context.Context, c hclspec.Command) ([]string, []executor.Mount, error) {
	in := &inputsInside{m: m}
	vars := map[string]string{"SRC": insideWork}
	text := c.Shell.Expand(in.path)
	for _, word := range c.Argv {
		text += word.Expand(in.path)
	}
	if strings.Contains(text, "SITE") {
		site, err := m.site(ctx)
		if err != nil {
			return nil, nil, err
		}
		vars["SITE"] = site
	}
	if c.Argv == nil {
		return []string{"sh", "-euc", exports(vars) + c.Shell.Expand(in.path)}, in.mounts, nil
	}
	argv := make([]string, len(c.Argv))
	for i, word := range c.Argv {
		argv[i] = os.Expand(word.Expand(in.path), func(name string) string {
			if value, ok := vars[name]; ok {
				return value
			}
			return "$" + name
		})
	}
	return argv, in.mounts, nil
}

// exports gives the commands of a shell their variables. In the container's own configuration they would stay in the image.
func exports(vars map[string]string) string {
	var b strings.Builder
	for _, name := range sortedKeys(vars) {
		fmt.Fprintf(&b, "export %s=%s\n", name, quoted(vars[name]))
	}
	return b.String()
}

// quoted makes one word of a shell of a text.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// inputsInside lays inputs into a container: those that texts refer to.
type inputsInside struct {
	m      *making
	mounts []executor.Mount
}

// path is where commands in the container find what a reference means.
func (i *inputsInside) path(a hclspec.Address) string {
	in := i.m.t.refs.input(i.m.env, a)
	inside := insideIn + "/" + strconv.Itoa(slices.Index(i.m.t.refs, a))
	if !slices.ContainsFunc(i.mounts, func(m executor.Mount) bool { return m.Inside == inside }) {
		i.mounts = append(i.mounts, executor.Mount{Host: in.Dir, Inside: inside})
	}
	if a.Kind == "fetch" && len(in.Files) == 1 {
		return inside + "/" + in.Files[0].Path
	}
	return inside
}

// digest stands for a reference in what a step is made from.
func (m *making) digest(a hclspec.Address) string {
	return "${" + m.t.refs.input(m.env, a).Digest + "}"
}

func (m *making) say(format string, args ...any) { m.sh.say(format, args...) }

func (m *making) progress(phase string) {
	m.env.Emit(engine.Event{Type: engine.NodeProgress, Phase: phase})
}

// engineFailure gives what an engine or a registry says its class. Other errors stay as they are.
func engineFailure(stage string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*engine.Failure](err); known || errors.Is(err, context.Canceled) {
		return err
	}
	f := &engine.Failure{Err: err, Failure: cache.Failure{Class: docker.Class(err), Rule: "engine", Stage: stage, Message: err.Error()}}
	if e, ok := errors.AsType[*docker.RegistryError](err); ok {
		said := *e
		said.Remedy = ""
		f.Rule, f.Message, f.Remedy = "registry_"+string(e.Reason), said.Error(), e.Remedy
		return f
	}
	if _, gone := errors.AsType[*docker.NoImage](err); gone {
		f.Class, f.Rule, f.Remedy = cache.Infra, engine.InputGone, "the next plan makes it anew"
		f.Retry = &engine.Retry{Attempts: 1}
		return f
	}
	if docker.IsFull(err) {
		f.Class, f.Rule, f.Remedy = cache.Infra, "disk_full", "make room where the engine keeps its images (docker system df)"
		f.Retry = &engine.Retry{Attempts: 1}
		return f
	}
	_, said := errors.AsType[*docker.Error](err)
	_, silent := errors.AsType[*docker.Unavailable](err)
	if !said && !silent {
		return err
	}
	return f
}
