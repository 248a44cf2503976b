package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
)

func BenchmarkHostRun(b *testing.B) {
	h := executor.NewHost(executor.HostOptions{})
	for b.Loop() {
		if s, err := executor.Run(b.Context(), h, executor.Command{Argv: []string{"/bin/true"},
			Dir: "/"}); err != nil || !s.OK() {
			b.Fatal(s, err)
		}
	}
}

// BenchmarkSandbox compares a command in a sandbox, one in that of a server, and bubblewrap with the same command
// without any: all take turns, and the medians of the differences count.
func BenchmarkSandbox(b *testing.B) {
	timed := sandboxTimer(b)
	server, err := timed.host.Start(b.Context(), executor.Command{Argv: []string{"/bin/sleep", "1000"}, Dir: timed.tmp,
		Sandbox: &executor.Sandbox{}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _, _ = server.Stop() }()
	var without, more, beside, peer []time.Duration
	for b.Loop() {
		base := timed.run(b, nil, "/bin/true")
		without = append(without, base)
		if timed.bubblewrap != nil {
			peer = append(peer, timed.run(b, nil, timed.bubblewrap...)-base)
		}
		more = append(more, timed.run(b, timed.sandbox(nil), "/bin/true")-base)
		beside = append(beside, timed.run(b, timed.sandbox(server), "/bin/true")-base)
	}
	b.ReportMetric(float64(median(without))/1e6, "ms/without")
	b.ReportMetric(float64(median(more))/1e6, "ms/more")
	b.ReportMetric(float64(median(beside))/1e6, "ms/more-beside")
	if peer != nil {
		b.ReportMetric(float64(median(peer))/1e6, "ms/more-bubblewrap")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSandboxAfter runs commands in sandboxes alone, one after the other with a pause between, and likewise in
// bubblewrap and without: after a pause, what is made ready for the next command is ready. The differences are those of
// medians.
func BenchmarkSandboxAfter(b *testing.B) {
	for _, pause := range []time.Duration{0, 2 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		b.Run(pause.String(), func(b *testing.B) {
			timed := sandboxTimer(b)
			series := func(n int, o *executor.Sandbox, argv ...string) time.Duration {
				var all []time.Duration
				for range n {
					time.Sleep(pause)
					all = append(all, timed.run(b, o, argv...))
				}
				return median(all)
			}
			var more, peer []time.Duration
			for b.Loop() { // in short series, so that a machine that has other work, too, has it for all
				const n = 10
				without := series(n, nil, "/bin/true")
				more = append(more, series(n, timed.sandbox(nil), "/bin/true")-without)
				if timed.bubblewrap != nil {
					peer = append(peer, series(n, nil, timed.bubblewrap...)-without)
				}
			}
			b.ReportMetric(float64(median(more))/1e6, "ms/more")
			if peer != nil {
				b.ReportMetric(float64(median(peer))/1e6, "ms/more-bubblewrap")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// sandboxTimed measures commands with and without sandboxes.
type sandboxTimed struct {
	host       *executor.Host
	tmp, home  string
	bubblewrap []string // that runs the same in a sandbox; nil: it is not installed
}

func sandboxTimer(b *testing.B) *sandboxTimed {
	if err := executor.CheckSandbox(); err != nil {
		b.Skip(err)
	}
	s := &sandboxTimed{host: executor.NewHost(executor.HostOptions{}), tmp: b.TempDir(), home: b.TempDir()}
	b.Cleanup(func() { _ = s.host.Close() })
	if path, err := exec.LookPath("bwrap"); err == nil {
		s.bubblewrap = []string{path, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc",
			"--dev", "/dev", "--bind", s.tmp, "/tmp", "--tmpfs", "/run", "--tmpfs", "/home", "/bin/true"}
	}
	return s
}

func (s *sandboxTimed) sandbox(beside executor.Process) *executor.Sandbox {
	return &executor.Sandbox{Tmp: s.tmp, Hidden: []string{s.home}, Beside: beside}
}

func (s *sandboxTimed) run(b *testing.B, o *executor.Sandbox, argv ...string) time.Duration {
	begun := time.Now()
	cmd := executor.Command{Argv: argv, Dir: b.TempDir(), Env: []string{"HOME=" + s.home}, Sandbox: o}
	if s, err := executor.Run(b.Context(), s.host, cmd); err != nil || !s.OK() {
		b.Fatal(s, err)
	}
	return time.Since(begun)
}

// BenchmarkContainer compares a command in a container with the least that an engine can be asked for to run it:
// create, start, wait, remove. Both take turns; the figures are medians, and their ratio is what counts
// (bench/container).
func BenchmarkContainer(b *testing.B) {
	e := containertest.Engine(b)
	image := containertest.Busybox(b, e)
	d := docker.New(e, nil)
	cmd := executor.Command{Argv: []string{"true"}, Dir: "/", Container: &executor.Container{Image: image}}
	ours := func() error {
		s, err := executor.Run(b.Context(), d, cmd)
		if err == nil && !s.OK() {
			err = fmt.Errorf("%+v", s)
		}
		return err
	}
	var took, least []time.Duration
	timed := func(all *[]time.Duration, f func() error) {
		begun := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		*all = append(*all, time.Since(begun))
	}
	number := 0
	for b.Loop() {
		number++
		timed(&took, ours)
		timed(&least, func() error { return bare(b.Context(), e, image, fmt.Sprintf("benchgraph-bench-%d", number)) })
	}
	a, z := median(took), median(least)
	b.ReportMetric(float64(a)/1e6, "ms/command")
	b.ReportMetric(float64(z)/1e6, "ms/bare")
	b.ReportMetric(float64(a)/float64(z), "ratio")
	b.ReportMetric(0, "ns/op")
}

// bare runs the same program in the same kind of container.
func bare(ctx context.Context, e *container.Engine, image, name string) error {
	yes, pids := true, int64(32768)
	_, err := e.Create(ctx, name, &api.Config{Image: image, Entrypoint: []string{"true"}}, &api.HostConfig{
		NetworkMode: "none", CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges:true"}, Init: &yes,
		LogConfig: api.LogConfig{Type: "none"}, Resources: api.Resources{PidsLimit: &pids},
	})
	if err != nil {
		return err
	}
	wait, err := e.Await(ctx, name)
	if err != nil {
		return err
	}
	if err := e.Start(ctx, name); err != nil {
		return err
	}
	_, err = wait()
	return errors.Join(err, e.Remove(ctx, name))
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
