package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/output"
	"github.com/docker/go-units"
)

// errDisk is the cause of cancellation for a command that has written more than its node may.
var errDisk = errors.New("more was written than the node may write")

// The free space of the disk is read every second, which costs nothing. The files of an attempt are counted only when
// the disk has lost half of the space that the attempt may still take, or so rarely that counting takes a fiftieth of a
// core.
const (
	diskPause  = time.Second
	countShare = 50
)

// bounded returns a context that ends with errDisk once the files of the attempt take more than Limits.Disk.
func (s *Shell) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if s.limits.Disk > 0 {
		go s.watchDisk(ctx, cancel)
	}
	return ctx, func() { cancel(nil) }
}

func (s *Shell) watchDisk(ctx context.Context, cancel context.CancelCauseFunc) {
	used, next := int64(0), time.Now()
	free, _ := fs.Free(s.env.Scratch)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(diskPause):
		}
		begun := time.Now()
		now, _ := fs.Free(s.env.Scratch)
		if begun.Before(next) && free-now < (s.limits.Disk-used)/2 {
			continue
		}
		var err error
		if used, err = s.written(); err != nil {
			continue // a directory may vanish; it is noticed when the command has ended
		}
		if used > s.limits.Disk {
			cancel(errDisk)
			return
		}
		free, next = now, begun.Add(countShare*time.Since(begun))
	}
}

// written returns the disk usage of the commands' files: those of the environment, which belongs to the attempt or to
// one member, and those beside $OUT, where a member has further output.
func (s *Shell) written() (int64, error) {
	return fs.Usage(s.env.Work, s.env.Scratch, filepath.Dir(s.out))
}

// overDisk reports whether a command was ended because of the size of its files, or should have been: a short command
// may end before its files are counted.
func (s *Shell) overDisk(ctx context.Context) bool {
	if errors.Is(context.Cause(ctx), errDisk) {
		return true
	}
	if s.limits.Disk == 0 || ctx.Err() != nil {
		return false
	}
	used, err := s.written()
	return err == nil && used > s.limits.Disk
}

// outOfDisk returns the failure of a command whose attempt has written more than its node may.
func (s *Shell) outOfDisk(stage string, o *output.Kept) error {
	return &engine.Failure{Failure: failure.Failure{
		Class: failure.Permanent, Rule: "disk_exceeded", Stage: stage, Evidence: o.LastLine(),
		Message: fmt.Sprintf("%s: ended, because the node wrote more than its %s of disk", stage,
			units.BytesSize(float64(s.limits.Disk))),
		Remedy: "raise disk in the block, and apply with -retry-failed",
	}}
}
