package tasks

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// knownIssueRule is the rule of a probe that found its known issue.
const knownIssueRule = "known_issue"

// KnownIssue says that a failure is a probe's answer: the issue is there, and the candidate is skipped for it.
func KnownIssue(f *cache.Failure) bool { return f != nil && f.Rule == knownIssueRule }

// probeTask asks, before a device is spent, whether a known issue is really there: its command fails when it is.
type probeTask struct {
	p    *Project
	refs refs
	spec *hclspec.KnownIssue
	src  hclspec.Address // the candidate's tree, where the probe runs; zero: an empty directory
}

func (t *probeTask) Describe(d *cache.Description) { t.refs.describeCommand(d, "probe", t.spec.Probe) }

func (t *probeTask) Run(ctx context.Context, env *engine.Env) error {
	dir := filepath.Join(env.Work, "src")
	sh, err := t.p.newShell(env, t.refs, dir, filepath.Join(env.Work, "out"))
	if err != nil {
		return err
	}
	if t.src != (hclspec.Address{}) {
		if err := copyTree(dir, t.refs.input(env, t.src).Dir); err != nil {
			return err
		}
	}
	err = sh.run(ctx, "verify", sh.expand(t.spec.Probe), 0, nil)
	var f *engine.Failure
	if errors.As(err, &f) && !f.Class.Retried() {
		f.Rule, f.Message = knownIssueRule, "known issue "+t.spec.Address.Name+": "+t.spec.Reason
	}
	return err
}

// addKnownIssue adds the node of a probe. An issue without a probe excludes its candidate by itself.
func (b *builder) addKnownIssue(k *hclspec.KnownIssue) {
	t := &probeTask{p: b.Project, spec: k}
	if c := b.candidates[k.Candidate]; c != nil {
		t.src = c.Source
	}
	t.refs.add(t.src)
	t.refs.addCommand(k.Probe)
	n := b.add(k.Block, t, t.refs)
	if k.Probe.Shell == nil && k.Probe.Argv == nil {
		n.Exclude = engine.Exclude{Action: engine.Skip, Reason: "known issue: " + k.Reason}
	}
}

// imageTask is a container image. This version plans images and cannot make them.
type imageTask struct {
	refs  refs
	spec  *hclspec.Image
	fixes []appliedFix
}

func (t *imageTask) Describe(d *cache.Description) {
	d.Add("from", t.spec.From)
	d.Add("context", t.spec.Context, t.spec.Dockerfile)
	for _, wheel := range t.spec.Install {
		d.Add("install", t.refs.label(wheel))
	}
	t.refs.describeCommand(d, "verify", t.spec.Verify)
	t.refs.describeEnv(d, t.spec.Args)
	t.refs.describeFixes(d, t.fixes)
	d.Add("push", t.spec.Push)
}

func (t *imageTask) Run(context.Context, *engine.Env) error { return errors.New(noEngine) }

const noEngine = "needs a container engine, which this version of benchgraph cannot drive; blocks without image run on the host"

func (b *builder) addImage(s *hclspec.Image) {
	t := &imageTask{spec: s, fixes: b.due(b.eligible(s.Fixes), s.Candidate)}
	t.refs.add(s.Install...)
	t.refs.addCommand(s.Verify)
	t.refs.addEnv(s.Args)
	t.refs.addFixes(t.fixes)
	b.add(s.Block, t, t.refs).Exclude = engine.Exclude{Action: engine.Blocked, Reason: noEngine}
}

// needImage makes a node that runs in an image depend on it.
func (b *builder) needImage(n *engine.Node, image hclspec.Address) {
	if image != (hclspec.Address{}) {
		b.link(n, &n.Needs, image)
	}
}
