package tasks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/counters"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Files of a lifecycle in its member's directory, beside those that samples are read from.
const (
	serverFile = "server.log"
	serverDir  = "server" // $OUT of a server
)

// lifecycle is one sample: lay out, start the server, warm up, run the command once for each pass, stop.
type lifecycle struct {
	t       *trialTask
	env     *engine.Env
	m       Member
	out     string // the member's directory in the result
	sh      *fix.Shell
	printed map[string]hash.Hash // digests of the measured command's output, by file
	ran     []sample.Artefact    // artefacts that were proven to run
	caches  []laidCache          // caches that were laid out
	instead bool                 // the check replaces the measured command
	seeds   *sample.Seeds        // of the block
	runs    int                  // commands that have had a seed so far

	took     time.Duration     // by the measured command, in all passes
	ready    time.Duration     // time until the server was ready
	counters counters.Counters // of the server, during the measured passes
}

// run goes through the lifecycle, checks its files and reads the primary metric. A run without that metric has failed,
// whatever its exit status; its output is kept, since the definition of the metric may be wrong. Files that cannot be
// kept are removed, so that they are not stored with the rest of the block.
func (l *lifecycle) run(ctx context.Context) error {
	dir, err := l.open(ctx)
	if err != nil {
		return err
	}
	ran := l.live(ctx, dir, l.measure)
	if ran == nil {
		ran = l.checkApart(ctx)
	}
	if err := l.admit(ctx); err != nil && !workdir.LacksRoom(ran) { // a full disk may have cut the output short
		return l.sh.Secrets.Conceal(errors.Join(err, fs.RemoveTree(l.out)))
	}
	if ran != nil {
		return l.sh.Secrets.Conceal(ran)
	}
	primary, err := sample.Primary(l.m.Bench, l.out)
	if err != nil {
		return l.sh.Excused(err)
	}
	l.emitSample(primary)
	l.warn(primary)
	return nil
}

// open makes the directories of the lifecycle and opens the shell in which the command runs.
func (l *lifecycle) open(ctx context.Context) (dir string, err error) {
	dir = filepath.Join(l.env.Work, l.m.Name)
	if err := os.Mkdir(l.out, 0o755); err != nil {
		return "", err
	}
	transcript.Of(l.env).Section(l.m.Bench.Address.String(), "one sample", false)
	l.sh, err = l.enter(ctx, dir, sample.OutDir, l.m.Bench.Client, cmp.Or(l.m.client, l.m.Bench.Image))
	return dir, err
}

// enter opens a shell for commands of the member. tree is laid out in the working directory; $OUT is the directory out
// of the result.
func (l *lifecycle) enter(ctx context.Context, dir, out string, tree, image hclspec.Address) (*fix.Shell, error) {
	of := l.m.Bench.Work
	of.Image = image
	return l.t.p.enter(ctx, l.env, l.t.refs, &of, shell.Place{
		Dir: dir, Out: filepath.Join(l.out, out), Tree: tree, Node: l.m.Bench.Address, Keyed: true,
	}, l.t.p.measuredIn(l.m.Bench), l.m.cures, l.m.built)
}

// admit checks the files that the lifecycle left.
func (l *lifecycle) admit(ctx context.Context) error {
	if err := workdir.Admit(ctx, l.env, l.out, l.m.Name, l.sh.Secrets, len(l.t.members)); err != nil {
		return err
	}
	for name, sum := range l.printed {
		if err := workdir.Unchanged(filepath.Join(l.out, name), sum); err != nil {
			return err
		}
	}
	return nil
}

// live lays out the data and applies fixes, starts the server if there is one, calls do, and stops the server.
func (l *lifecycle) live(ctx context.Context, dir string, do func(context.Context, *shell.Server) error) error {
	if err := l.t.refs.LayData(l.env, dir, l.m.Bench.Data); err != nil {
		return err
	}
	if err := l.sh.Apply(ctx, l.m.fixes); err != nil {
		return err
	}
	if l.m.Bench.Server != nil {
		return l.serve(ctx, do)
	}
	if err := l.layCaches(l.sh); err != nil {
		return err
	}
	if l.contained() {
		l.progress("prove")
		if err := l.proven(l.sh.Prove(ctx, l.m.Bench.Command)); err != nil {
			return err
		}
	}
	return do(ctx, nil)
}

// contained reports whether the member runs in containers.
func (l *lifecycle) contained() bool { return l.m.Bench.Image != hclspec.Address{} }

// serve starts the server, calls do, and stops the server.
func (l *lifecycle) serve(ctx context.Context, do func(context.Context, *shell.Server) error) error {
	own, err := l.apart(ctx)
	if err != nil {
		return err
	}
	l.progress("start")
	if err := l.layCaches(own); err != nil {
		return err
	}
	begun := time.Now()
	server, err := own.Serve(ctx, l.m.Bench.Server, filepath.Join(l.out, serverFile))
	if err != nil {
		return err
	}
	l.ready = time.Since(begun)
	if l.contained() {
		l.progress("prove")
		err = l.proven(server.Prove(ctx))
	}
	if err == nil {
		err = do(ctx, server)
	}
	return errors.Join(err, server.Stop())
}

// apart opens the shell of the server. It shares no directory with the client's but /tmp on the host: a server could
// change the files that its client runs. In containers it does not get the client's tree, whose packages would hide the
// installed ones.
func (l *lifecycle) apart(ctx context.Context) (*fix.Shell, error) {
	dir, err := os.MkdirTemp(l.env.Work, "server-")
	if err != nil {
		return nil, err
	}
	if !l.contained() {
		return l.sh.Apart(dir, filepath.Join(l.out, serverDir))
	}
	own, err := l.enter(ctx, dir, serverDir, hclspec.Address{}, l.m.Bench.Image)
	if err == nil {
		err = l.t.refs.LayData(l.env, dir, l.m.Bench.Data)
	}
	return own, err
}

// proven records the packages and modules that were proven to run before the first measured request.
func (l *lifecycle) proven(proof shell.Proof, err error) error {
	if err != nil {
		return err
	}
	image := l.m.Bench.Image
	l.ran = append(l.ran, sample.Artefact{
		Node: image.String(), Digest: l.t.refs.Input(l.env, image).Digest, Image: proof.Image, Packages: proof.Packages,
		Modules: proof.Modules,
	})
	return nil
}

func (l *lifecycle) progress(phase string) {
	aside := phase == "fill" || strings.HasPrefix(phase, "warm-up")
	transcript.Of(l.env).Section("", phase, aside)
	l.env.Emit(engine.Event{Type: engine.NodeProgress, Phase: phase,
		Data: map[string]any{"candidate": l.m.Candidate, "block": l.t.block}})
}

// measure runs the command, first for the warm-up, then for the sample.
func (l *lifecycle) measure(ctx context.Context, server *shell.Server) error {
	for i := range l.m.Bench.Design.Warmup {
		l.progress(fmt.Sprintf("warm-up %d", i+1))
		if err := l.client(ctx, server, nil); err != nil {
			return err
		}
		if err := l.emptyOut(); err != nil {
			return err
		}
	}
	before := server.Counted(ctx)
	if l.instead {
		err := l.check(ctx, server)
		_ = server.Counted(ctx) // as after each measured command
		return err
	}
	l.printed = map[string]hash.Hash{}
	for i := range l.m.Bench.Design.Passes() {
		if i > 0 {
			if err := l.putAside(i); err != nil {
				return err
			}
		}
		if err := l.pass(ctx, server, i+1); err != nil {
			return err
		}
	}
	if len(before) > 0 {
		l.counters = server.Counted(ctx).Since(before)
	}
	if l.hasOwnCheck() {
		return nil
	}
	return l.check(ctx, server)
}

// pass runs the command once, for one part of the sample. Its output is where that of a single pass would be, so that
// readers of a failure find it.
func (l *lifecycle) pass(ctx context.Context, server *shell.Server, number int) error {
	phase := "run"
	if l.m.Bench.Design.Passes() > 1 {
		phase = fmt.Sprintf("pass %d", number)
	}
	l.progress(phase)
	stdout, err := workdir.Create(filepath.Join(l.out, sample.StdoutFile))
	if err != nil {
		return err
	}
	sum := sha256.New()
	l.printed[sample.StdoutFile] = sum
	begun := time.Now()
	err = l.client(ctx, server, io.MultiWriter(stdout, sum))
	l.took += time.Since(begun)
	return errors.Join(err, stdout.Close())
}

// putAside moves the output of a pass into a directory of its own, before the next pass.
func (l *lifecycle) putAside(number int) error {
	dir := sample.PassDir(number)
	if err := os.Mkdir(filepath.Join(l.out, dir), 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			return workdir.ForeignOutput()
		}
		return err
	}
	transcript.Of(l.env).Did("empty", filepath.Join(l.out, sample.OutDir))
	for _, name := range []string{sample.StdoutFile, sample.OutDir} {
		if err := os.Rename(filepath.Join(l.out, name), filepath.Join(l.out, dir, name)); err != nil {
			return err
		}
	}
	l.printed[filepath.Join(dir, sample.StdoutFile)] = l.printed[sample.StdoutFile]
	return os.Mkdir(filepath.Join(l.out, sample.OutDir), 0o755)
}

// client runs the measured command.
func (l *lifecycle) client(ctx context.Context, server *shell.Server, stdout io.Writer) error {
	b := l.m.Bench
	l.seed(l.sh)
	if server == nil {
		return l.sh.Run(ctx, "run", b.Command, b.Timeout, stdout)
	}
	return server.Client(ctx, l.sh.Shell, b.Command, b.Timeout, stdout)
}

// seed sets the seed variable for the next command. A server that is already running does not see it.
func (l *lifecycle) seed(sh *fix.Shell) {
	sh.SetEnv(map[string]hclspec.Text{sample.SeedVariable: {{Literal: l.seeds.At(l.runs)}}})
	l.runs++
}

func (l *lifecycle) emitSample(s metrics.Sample) {
	data := map[string]any{
		"benchmark": l.m.Bench.Address.Name, "candidate": l.m.Candidate, "block": l.t.block, "baseline": l.m.Baseline,
		"metric": s.Metric, "value": s.Value, "unit": s.Unit,
	}
	if better, known := sample.Better(l.m.Bench.Metrics, s.Metric, s.Unit); known {
		data["better"] = better
	}
	l.env.Emit(engine.Event{Type: engine.SampleTaken, Data: data})
}

// warn reports, in the first block, what the file should say otherwise.
func (l *lifecycle) warn(s metrics.Sample) {
	if l.t.block == 1 && l.m.Baseline {
		for _, text := range group.Remarks(l.m.Bench, s, l.out, len(l.t.members)) {
			l.env.Emit(engine.Event{Type: engine.Note, Reason: text})
		}
	}
}

// emptyOut empties the command's $OUT.
func (l *lifecycle) emptyOut() error {
	dir := filepath.Join(l.out, sample.OutDir)
	transcript.Of(l.env).Did("empty", dir)
	return errors.Join(fs.RemoveTree(dir), os.MkdirAll(dir, 0o755))
}
