package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
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

// BenchmarkSandbox compares a command in a sandbox with the same one without: both take turns, and the median of the
// differences counts.
func BenchmarkSandbox(b *testing.B) {
	if err := executor.CheckSandbox(); err != nil {
		b.Skip(err)
	}
	h := executor.NewHost(executor.HostOptions{})
	tmp, home := b.TempDir(), b.TempDir()
	timed := func(o *executor.Sandbox) time.Duration {
		begun := time.Now()
		cmd := executor.Command{Argv: []string{"/bin/true"}, Dir: b.TempDir(), Env: []string{"HOME=" + home},
			Sandbox: o}
		if s, err := executor.Run(b.Context(), h, cmd); err != nil || !s.OK() {
			b.Fatal(s, err)
		}
		return time.Since(begun)
	}
	server, err := h.Start(b.Context(), executor.Command{Argv: []string{"/bin/sleep", "1000"}, Dir: tmp,
		Sandbox: &executor.Sandbox{}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _, _ = server.Stop() }()
	var without, more, beside []time.Duration
	for b.Loop() {
		base := timed(nil)
		without = append(without, base)
		more = append(more, timed(&executor.Sandbox{Tmp: tmp, Hidden: []string{home}})-base)
		beside = append(beside, timed(&executor.Sandbox{Tmp: tmp, Hidden: []string{home}, Beside: server})-base)
	}
	b.ReportMetric(float64(median(without))/1e6, "ms/without")
	b.ReportMetric(float64(median(more))/1e6, "ms/more")
	b.ReportMetric(float64(median(beside))/1e6, "ms/more-beside")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkContainer compares a command in a container with the least that an engine can be asked for to run it:
// create, start, wait, remove. Both take turns; the figures are medians, and their ratio is what counts
// (bench/container).
func BenchmarkContainer(b *testing.B) {
	e := containertest.Engine(b)
	image := containertest.Busybox(b, e)
	d := executor.NewDocker(e, nil)
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
