package tasks

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/input"
)

// knownIssueRule is the rule of a probe's failure when the known issue is present.
const knownIssueRule = "known_issue"

// KnownIssue reports whether a failure is a probe's finding that the issue is present. The candidate is then skipped.
func KnownIssue(f *failure.Failure) bool { return f != nil && f.Rule == knownIssueRule }

// probeTask tests for a known issue before a device is used. The command of the probe fails if the issue is present.
type probeTask struct {
	p     *Drawing
	refs  input.Refs
	spec  *hclspec.KnownIssue
	src   hclspec.Address // the candidate's tree, where the probe runs; zero: an empty directory
	image hclspec.Address // image in which the probe runs; zero: on the host
}

func (t *probeTask) Describe(d *cache.Description) {
	t.refs.DescribeCommand(d, "probe", t.spec.Probe)
	t.refs.DescribeImage(d, t.image, false)
	describeSandbox(d, t.p.madeIn(t.spec.Sandbox, t.image))
}

func (t *probeTask) Run(ctx context.Context, env *engine.Env) error {
	sh, err := t.p.enter(ctx, env, t.refs, &hclspec.Work{Image: t.image, Sandbox: t.spec.Sandbox}, shell.Place{
		Dir: filepath.Join(env.Work, "src"), Out: filepath.Join(env.Work, "out"), Tree: t.src, Node: t.spec.Address,
		InOut: true, // an empty directory: in the tree, its packages would hide the installed ones
	}, t.p.madeIn(t.spec.Sandbox, t.image), nil, nil)
	if err != nil {
		return err
	}
	err = sh.Run(ctx, "verify", t.spec.Probe, 0, nil)
	if f, ok := errors.AsType[*engine.Failure](err); ok && !f.Class.Retried() {
		f.Rule, f.Message = knownIssueRule, "known issue "+t.spec.Address.Name+": "+t.spec.Reason
	}
	return err
}

// imageOfBenchmarks returns the image in which all benchmarks of a candidate run; zero if they do not share one.
func (b *builder) imageOfBenchmarks(candidate string) hclspec.Address {
	if b.places == nil {
		b.places = map[string]hclspec.Address{}
		for i := range b.Spec.Benchmarks {
			s := &b.Spec.Benchmarks[i]
			if other, known := b.places[s.Candidate]; known && other != s.Image {
				b.places[s.Candidate] = hclspec.Address{}
			} else {
				b.places[s.Candidate] = s.Image
			}
		}
	}
	return b.places[candidate]
}

// addKnownIssue adds the node of a probe. An issue without a probe excludes its candidate at once.
func (b *builder) addKnownIssue(k *hclspec.KnownIssue) {
	t := &probeTask{p: b.Drawing, spec: k}
	if c := b.candidates[k.Candidate]; c != nil {
		t.src = c.Source
	}
	t.refs.Add(t.src)
	t.refs.AddCommand(k.Probe)
	if t.image = b.imageOfBenchmarks(k.Candidate); t.image != (hclspec.Address{}) {
		t.refs.Add(t.image)
	}
	n := b.add(k.Block, t, t.refs)
	b.needEngine(n, t.image)
	b.needSandbox(n, k.Sandbox, t.image)
	if k.Probe.Shell == nil && k.Probe.Argv == nil {
		n.Exclude = engine.Exclude{Action: engine.Skip, Reason: "known issue: " + k.Reason}
	}
}
