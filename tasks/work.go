package tasks

import (
	"context"
	"fmt"
	"strconv"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/input"
)

// work is the common part of wheel builds and task blocks: both run one command.
type work struct {
	p     *Drawing
	refs  input.Refs
	of    *hclspec.Work
	files []File // inputs from the project
	cures []fix.Cure
	fixes []fix.Due
	built []fix.Due // fixes that the image was made with
}

// worker is implemented by tasks that embed work.
type worker interface{ common() *work }

func (w *work) common() *work { return w }

// newWork returns the work of a block, with references to all that the block needs: its source, the references in its
// command and environment, and needs. fixes are the fixes that may be applied to the block.
func (b *builder) newWork(block hclspec.Block, of *hclspec.Work, source hclspec.Address,
	needs, fixes []hclspec.Address) work {
	w := work{p: b.Drawing, of: of, cures: b.cures(fixes, block.Address, block.Candidate),
		fixes: b.due(fixes, block.Address, block.Candidate)}
	w.refs.Add(source)
	w.refs.AddCommand(of.Command)
	w.refs.AddEnv(of.Env)
	w.refs.Add(needs...)
	fix.Refer(&w.refs, w.fixes)
	w.cures, w.built = b.withImage(w.cures, of.Image, block.Candidate)
	w.refs.Add(of.Image)
	return w
}

// setResources sets the resources that the node requests, and its conditions on the machine.
func (b *builder) setResources(n *engine.Node, of *hclspec.Work) {
	n.Resources, n.Estimate = request(of.Limits), of.Estimate
	b.needEngine(n, of.Image)
	b.needMounts(n, of.Mounts, of.Image)
	b.needSandbox(n, of.Sandbox, of.Image)
}

// describeFiles adds the files of the project to a key.
func (w *work) describeFiles(d *cache.Description) {
	for _, f := range w.files {
		d.Add("file", f.Path, f.SHA256, strconv.FormatBool(cache.Executable(f.Mode)))
	}
}

// describe adds the command and its surroundings to a key.
func (w *work) describe(d *cache.Description, data []hclspec.Data, outputs []string) {
	w.refs.DescribeCommand(d, "command", w.of.Command)
	w.refs.DescribeEnv(d, w.of.Env)
	w.refs.DescribeData(d, data)
	w.refs.DescribeImage(d, w.of.Image, w.of.Network)
	w.p.describeMounts(d, w.of.Mounts)
	describeSandbox(d, w.p.madeIn(w.of.Sandbox, w.of.Image))
	fix.Describe(d, w.refs, w.fixes)
	d.Add("outputs", outputs...)
}

// enter opens the shell in which the command runs.
func (w *work) enter(ctx context.Context, env *engine.Env, at shell.Place) (*fix.Shell, error) {
	in := w.p.madeIn(w.of.Sandbox, w.of.Image)
	return w.p.enter(ctx, env, w.refs, w.of, at, in, w.cures, w.built)
}

// enter opens a shell at a place, in the image of the block or on the host. A failure in this shell can teach those of
// the cures that are not applied yet.
func (p *Facts) enter(ctx context.Context, env *engine.Env, r input.Refs, of *hclspec.Work, at shell.Place,
	in executor.Confinement, cures []fix.Cure, applied []fix.Due) (*fix.Shell, error) {
	var err error
	if at.Mounts, err = p.openMounts(ctx, of.Mounts, of.Image != hclspec.Address{}); err != nil {
		return nil, err
	}
	if at.Env == nil {
		at.Env = of.Env
	}
	at.Limits, at.Network, at.Secrets = of.Limits, of.Network, of.Secrets
	at.Hidden = p.hides(in)
	if of.Image != (hclspec.Address{}) {
		rec, err := image.Read(r.Input(env, of.Image).Entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.Image, err)
		}
		at.Image = rec.ForShell()
	}
	return fix.Open(p.shells, env, r, at, p.Spec.Dir, cures, applied)
}
