package slurm

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Names of the files in the directory of a job.
const (
	projectFile = "project"
	requestFile = "request-" // begins the name; each submission has a request of its own, encrypted
	outputFile  = "output"   // standard output and error, to which another run of the job appends
)

// ofJob ends the names of the directories of jobs, which begin with the keys.
const ofJob = ".job"

func (o *Options) dirOf(key string) string { return filepath.Join(o.WorkDir, key+ofJob) }

// kept is what the directory of a job has for one submission.
type kept struct {
	dir              string
	project, request []byte // the request is encrypted
	name, key        string // of the file with the request; the encryption key, which the job's environment alone has
}

// keep returns what is to be kept of a job. An sbatch that nobody waits for any more may still make its job, so that
// another submission must not replace the request of that job.
func (o *Options) keep(j job.Job) kept {
	k := kept{dir: o.dirOf(j.Key), project: j.Project, name: requestFile + rand.Text()[:8]}
	k.request, k.key = job.Encrypt(j.Request)
	return k
}

// environ is what the job has in its environment to find its request.
func (k *kept) environ() []string {
	return []string{job.RequestVariable + "=" + filepath.Join(k.dir, k.name), job.RequestKeyVariable + "=" + k.key}
}

// write makes the directory of the job, which only the user can read.
func (k *kept) write() error {
	err := os.MkdirAll(k.dir, 0o700)
	if err == nil {
		err = fs.CheckOwner(k.dir)
	}
	if err == nil {
		err = os.Chmod(k.dir, 0o700)
	}
	if err == nil {
		err = fs.Replace(filepath.Join(k.dir, projectFile), k.project)
	}
	if err != nil {
		return err
	}
	return fs.Replace(filepath.Join(k.dir, k.name), k.request)
}

// Log writes what a job has printed; nothing if the job never ran.
func (c *Cluster) Log(_ context.Context, id job.ID, w io.Writer) error {
	if err := id.Check(isNumber); err != nil {
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

// maxProject bounds the bytes that are read of whose job it was.
const maxProject = 1 << 20

// Sweep removes the directories of jobs that are neither queued nor running, unless they are to stay. See job.Keeper.
func (c *Cluster) Sweep(ctx context.Context, stays func(key string, changed time.Time, project []byte) bool) (
	live []job.ID, err error) {
	entries, err := os.ReadDir(c.o.WorkDir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range entries {
		key, ours := strings.CutSuffix(e.Name(), ofJob)
		dir := filepath.Join(c.o.WorkDir, e.Name())
		if !ours || !e.IsDir() || !job.IsKey(key) || fs.CheckOwner(dir) != nil {
			continue
		}
		info, err := os.Lstat(dir)
		if err != nil || stays(key, info.ModTime(), readProject(dir)) {
			continue
		}
		id, found, err := c.Find(ctx, key)
		if err != nil {
			return live, errors.Join(append(errs, err)...)
		}
		if found {
			live = append(live, id)
		} else {
			errs = append(errs, fs.RemoveTree(dir))
		}
	}
	return live, errors.Join(errs...)
}

func readProject(dir string) []byte {
	f, _, err := fs.OpenRegular(filepath.Join(dir, projectFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProject))
	if err != nil {
		return nil
	}
	return text
}
