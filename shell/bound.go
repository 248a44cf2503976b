package shell

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/output"
)

// errDisk is the cause of cancellation for a command that has written more than its node may.
var errDisk = errors.New("more was written than the node may write")

// The free space of the disk is read every second, which costs nothing. The files of an attempt are counted only when
// the disk has lost half of the space that the attempt may still take, or so rarely that counting takes a fiftieth of a
// core.
const (
	diskPause  = time.Second
	countShare = 50

	mostPrinted = 1 << 30 // bytes of output of a command in a block without disk
)

// bounded returns a context for a command and the limit of its output. The context ends with errDisk once the files of
// the attempt take more than Limits.Disk, and with the reasons of the output's limit.
func (s *Shell) bounded(ctx context.Context) (context.Context, *output.Limit, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if s.limits.Disk > 0 {
		go s.watchDisk(ctx, cancel)
	}
	return ctx, output.NewLimit(s.mostPrinted(), cancel), func() { cancel(nil) }
}

func (s *Shell) mostPrinted() int64 { return cmp.Or(s.limits.Disk, mostPrinted) }

func (s *Shell) watchDisk(ctx context.Context, cancel context.CancelCauseFunc) {
	first, _ := fs.Free(s.env.Scratch)
	used, free, next := int64(0), first, time.Now()
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
		if used, err = s.written(first-now > s.limits.Disk/2); err != nil { // hidden files may be large
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
func (s *Shell) written(reveal bool) (int64, error) {
	used, err := fs.Usage(reveal, s.env.Work, s.env.Scratch, filepath.Dir(s.out))
	return used.Bytes, err
}

// ended reports whether a command was ended because of the size of its files or of its output.
func ended(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errDisk) || errors.Is(context.Cause(ctx), output.ErrTooLong)
}

// overDisk reports whether a command was ended because of the size of its files or of its output, or should have been:
// a short command may end before its files are counted.
func (s *Shell) overDisk(ctx context.Context) bool {
	if ended(ctx) {
		return true
	}
	if s.limits.Disk == 0 || ctx.Err() != nil {
		return false
	}
	used, err := s.written(true)
	return err == nil && used > s.limits.Disk
}

// outOfDisk returns the failure of a command whose attempt has written, or which has printed, more than it may.
func (s *Shell) outOfDisk(ctx context.Context, stage string, o *output.Kept) error {
	if errors.Is(context.Cause(ctx), output.ErrTooLong) {
		return diagnosis.PrintedTooMuch(stage, s.mostPrinted(), s.limits.Disk > 0, o.LastLine())
	}
	return diagnosis.WroteTooMuch(stage, s.limits.Disk, o.LastLine())
}
