package tasks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/sample"
	"github.com/benchgraph/benchgraph/metrics"
)

// What a lifecycle leaves in its member's directory, beside what samples are read from.
const (
	serverFile = "server.log"
	serverDir  = "server" // what a server in a container wrote to its own
)

// lifecycle is one sample: lay out, start the server, warm up, run the command, stop.
type lifecycle struct {
	t   *trialTask
	env *engine.Env
	m   member
	out string // the member's directory in the result
	sh  *shell
	sum hash.Hash         // of what the measured command printed
	ran []sample.Artefact // what was proven to run
}

// run goes through the lifecycle, looks at what it left, and reads the primary metric: a run that yields none is a
// failure, whatever its exit status. Its output is kept all the same, since it may be the definition of the metric that
// is wrong. What cannot be kept is removed, so that nothing of it is stored with the rest of the block.
func (l *lifecycle) run(ctx context.Context) (err error) {
	dir := filepath.Join(l.env.Work, l.m.name)
	if err := os.Mkdir(l.out, 0o755); err != nil {
		return err
	}
	l.sh, err = l.t.p.newShell(l.env, l.t.refs, dir, filepath.Join(l.out, sample.OutDir))
	if err != nil {
		return err
	}
	ran := l.live(ctx, dir)
	if err := l.admit(ctx); err != nil {
		return conceal(errors.Join(err, cache.RemoveTree(l.out)), l.sh.secrets)
	}
	if ran != nil {
		return conceal(ran, l.sh.secrets)
	}
	primary, err := sample.Primary(l.m.bench.Metrics, l.out)
	if err != nil {
		return l.sh.excused(err)
	}
	l.tell(primary)
	l.warn(primary)
	return nil
}

// admit looks at what the lifecycle left.
func (l *lifecycle) admit(ctx context.Context) error {
	if err := admit(ctx, l.out, l.m.name, l.sh.secrets); err != nil || l.sum == nil {
		return err
	}
	f, err := os.Open(filepath.Join(l.out, sample.StdoutFile))
	if err != nil {
		return foreignOutput()
	}
	defer f.Close()
	now := sha256.New()
	if _, err := io.Copy(now, f); err != nil {
		return err
	}
	if !bytes.Equal(now.Sum(nil), l.sum.Sum(nil)) {
		return foreignOutput()
	}
	return nil
}

// foreignOutput is the failure of a run whose output is not what the measured command printed.
func foreignOutput() error {
	return unfit("foreign_output", "the file that keeps the command's output was changed by something else than its output", "let commands write below $OUT and nowhere else")
}

// live is the lifecycle itself.
func (l *lifecycle) live(ctx context.Context, dir string) error {
	b, sh := l.m.bench, l.sh
	if err := l.layOut(dir); err != nil {
		return err
	}
	if err := l.settle(sh, cmp.Or(l.m.client, b.Image)); err != nil {
		return err
	}
	if err := sh.apply(ctx, l.m.fixes); err != nil {
		return err
	}
	if b.Server == nil {
		if sh.box != nil {
			if err := l.prove(ctx, sh, nil, b.Command); err != nil {
				return err
			}
		}
		return l.measure(ctx, sh, nil)
	}
	return l.serve(ctx, sh)
}

// settle gives a shell its place and what the file declares for it.
func (l *lifecycle) settle(sh *shell, image hclspec.Address) error {
	b := l.m.bench
	err := sh.enter(l.t.refs, inside{node: b.Address, image: image, network: b.Network, Limits: b.Limits, keyed: true})
	if err != nil {
		return err
	}
	sh.fixes, sh.applied = l.m.allowed, l.m.built
	sh.setEnv(b.Env)
	return sh.setSecrets(b.Secrets)
}

// serve measures what talks to a server. Both are in the same place on the host, and as far apart as can be in containers:
// the server's has no tree of the client, which could be taken for what is installed, and not the client's $OUT.
func (l *lifecycle) serve(ctx context.Context, sh *shell) error {
	own := sh
	if sh.box != nil {
		dir, err := os.MkdirTemp(l.env.Work, "server-")
		if err != nil {
			return err
		}
		if own, err = l.t.p.newShell(l.env, l.t.refs, dir, filepath.Join(l.out, serverDir)); err != nil {
			return err
		}
		if err := errors.Join(l.t.refs.layData(l.env, dir, l.m.bench.Data), l.settle(own, l.m.bench.Image)); err != nil {
			return err
		}
	}
	l.progress("start")
	server, err := startServer(ctx, own, l.m.bench.Server, filepath.Join(l.out, serverFile))
	if err != nil {
		return err
	}
	if sh.box != nil {
		sh.box.Beside = server.process
		err = l.prove(ctx, server.sh, server, l.m.bench.Server.Command)
	}
	if err == nil {
		err = l.measure(ctx, sh, server)
	}
	return errors.Join(err, server.stop())
}

func (l *lifecycle) progress(phase string) {
	l.env.Emit(engine.Event{Type: engine.NodeProgress, Phase: phase, Data: map[string]any{"candidate": l.m.candidate, "block": l.t.block}})
}

// layOut puts the client's tree and the data into the working directory.
func (l *lifecycle) layOut(dir string) error {
	if c := l.m.bench.Client; c != (hclspec.Address{}) {
		if err := copyTree(dir, l.t.refs.input(l.env, c).Dir); err != nil {
			return err
		}
	}
	return l.t.refs.layData(l.env, dir, l.m.bench.Data)
}

// measure runs the command, first for warming up, then for the sample.
func (l *lifecycle) measure(ctx context.Context, sh *shell, s *server) error {
	b := l.m.bench
	argv := sh.expand(b.Command)
	for i := range b.Design.Warmup {
		l.progress(fmt.Sprintf("warm-up %d", i+1))
		if err := l.client(ctx, sh, s, argv, nil); err != nil {
			return err
		}
		if err := emptyDir(filepath.Join(l.out, sample.OutDir)); err != nil {
			return err
		}
	}
	l.progress("run")
	stdout, err := create(filepath.Join(l.out, sample.StdoutFile))
	if err != nil {
		return err
	}
	l.sum = sha256.New()
	err = l.client(ctx, sh, s, argv, io.MultiWriter(stdout, l.sum))
	return errors.Join(err, stdout.Close())
}

// client runs the measured command. It ends at once when the server dies. What it says of a server that crashed meanwhile is
// no sample, however well it ended itself: many a client counts the requests that failed and goes on.
func (l *lifecycle) client(ctx context.Context, sh *shell, s *server, argv []string, stdout io.Writer) error {
	if s == nil {
		return sh.run(ctx, "run", argv, l.m.bench.Timeout, stdout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.process.Done():
			cancel(errServerDied)
		case <-ctx.Done():
		}
	}()
	err := sh.run(ctx, "run", argv, l.m.bench.Timeout, stdout)
	if err != nil && s.dead() || err == nil && s.crashed(ctx) {
		return s.died("run")
	}
	return err
}

var errServerDied = errors.New("the server died")

// silent says that a run left no output at all: then it is not the definition of the metric that is wrong.
func (l *lifecycle) silent() bool {
	if info, err := os.Stat(filepath.Join(l.out, sample.StdoutFile)); err != nil || info.Size() > 0 {
		return false
	}
	files, err := os.ReadDir(filepath.Join(l.out, sample.OutDir))
	return err == nil && len(files) == 0
}

func (l *lifecycle) tell(s metrics.Sample) {
	l.env.Emit(engine.Event{Type: engine.SampleTaken, Data: map[string]any{
		"benchmark": l.m.bench.Address.Name, "candidate": l.m.candidate, "block": l.t.block,
		"metric": s.Metric, "value": s.Value, "unit": s.Unit,
	}})
}

// warn says in the first block that no verdict can come of the metric: the file can be corrected meanwhile, and nothing is
// measured again for it.
func (l *lifecycle) warn(s metrics.Sample) {
	if _, known := sample.Better(l.m.bench.Metrics, s.Metric, s.Unit); known || l.t.block > 1 || !l.m.baseline {
		return
	}
	l.env.Emit(engine.Event{Type: engine.Note, Reason: fmt.Sprintf("%s: nothing says whether a higher or a lower %s is better, so there will be no verdict: say better = \"higher\" or \"lower\" in its metric block. What is measured meanwhile is kept.",
		l.m.bench.Address.Kind+"."+l.m.bench.Address.Name, s.Metric)})
}

func emptyDir(dir string) error {
	if err := cache.RemoveTree(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}
