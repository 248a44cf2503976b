package slurm

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Names of the files in the directory of a job.
const (
	requestFile = "request"
	outputFile  = "output" // standard output and error, to which another run of the job appends
)

// ofJob ends the names of the directories of jobs, which begin with the keys.
const ofJob = ".job"

func (o *Options) dirOf(key string) string { return filepath.Join(o.WorkDir, key+ofJob) }

func (o *Options) requestOf(key string) string { return filepath.Join(o.dirOf(key), requestFile) }

// keep makes the directory of a job with its request, which only the user can read.
func (c *Cluster) keep(j job.Job) error {
	dir := c.o.dirOf(j.Key)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = cache.CheckOwner(dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return err
	}
	return fs.Replace(c.o.requestOf(j.Key), j.Request)
}

// Log writes what a job has printed; nothing if the job never ran.
func (c *Cluster) Log(_ context.Context, id job.ID, w io.Writer) error {
	if err := check(id); err != nil {
		return err
	}
	dir := c.o.dirOf(id.Key())
	_, _ = os.ReadDir(dir) // has a network file system look again
	f, _, err := fs.OpenRegular(filepath.Join(dir, outputFile))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = io.Copy(w, f)
		err = errors.Join(err, f.Close())
	}
	return err
}

// Forget removes the directory of a job that is over.
func (c *Cluster) Forget(_ context.Context, key string) error {
	if !job.IsKey(key) {
		return nil
	}
	return fs.RemoveTree(c.o.dirOf(key))
}

// maxRequest bounds the bytes of a request that is read.
const maxRequest = 64 << 20

// Sweep removes the directories of jobs that are neither queued nor running, unless they are to stay. Stays is given
// the key, the time at which the directory was changed last, and the request; nil if that cannot be read.
func (c *Cluster) Sweep(ctx context.Context, stays func(key string, changed time.Time, request []byte) bool) error {
	entries, err := os.ReadDir(c.o.WorkDir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		key, ours := strings.CutSuffix(e.Name(), ofJob)
		dir := filepath.Join(c.o.WorkDir, e.Name())
		if !ours || !e.IsDir() || !job.IsKey(key) || cache.CheckOwner(dir) != nil {
			continue
		}
		info, err := os.Lstat(dir)
		if err != nil || stays(key, info.ModTime(), readRequest(dir)) {
			continue
		}
		_, found, err := c.Find(ctx, key)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if !found {
			errs = append(errs, fs.RemoveTree(dir))
		}
	}
	return errors.Join(errs...)
}

func readRequest(dir string) []byte {
	f, info, err := fs.OpenRegular(filepath.Join(dir, requestFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	if info.Size() > maxRequest {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRequest))
	if err != nil {
		return nil
	}
	return text
}
