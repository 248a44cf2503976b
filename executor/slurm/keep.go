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
	requestFile = "request-" // prefix; each submission has its own request, encrypted
	outputFile  = "output"   // standard output and error; a second run of the job appends to it
)

// ofJob ends the names of the directories of jobs, which begin with the keys.
const ofJob = ".job"

func (o *Options) dirOf(key string) string { return filepath.Join(o.WorkDir, key+ofJob) }

// kept holds the files in the directory of a job for one submission.
type kept struct {
	dir              string
	project, request []byte // the request is encrypted
	name, key        string // name of the file with the request; encryption key, which only the job's environment has
}

// keep returns the files to write for a job. Each submission has its own request file: an earlier sbatch may still
// make its job, and that job needs its own request.
func (o *Options) keep(j job.Job) kept {
	k := kept{dir: o.dirOf(j.Key), project: j.Project, name: requestFile + rand.Text()[:8]}
	k.request, k.key = job.Encrypt(j.Request)
	return k
}

// environ returns the variables by which the job finds its request.
func (k *kept) environ() []string {
	return []string{job.RequestVariable + "=" + filepath.Join(k.dir, k.name), job.RequestKeyVariable + "=" + k.key}
}

// write makes the directory of the job, which only the user can read, and its files.
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

// Log writes the output of a job; nothing if the job never ran.
func (c *Cluster) Log(_ context.Context, id job.ID, w io.Writer) error {
	if err := id.Check(isNumber); err != nil {
		return err
	}
	dir := c.o.dirOf(id.Key())
	_, _ = os.ReadDir(dir) // makes a network file system refresh the directory
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

// Forget removes the directory of an ended job.
func (c *Cluster) Forget(_ context.Context, key string) error {
	if !job.IsKey(key) {
		return nil
	}
	return fs.RemoveTree(c.o.dirOf(key))
}

// maxProject limits the bytes of a project file that are read.
const maxProject = 1 << 20

// Sweep removes the directories of jobs that are neither queued nor running, unless stays returns true. See
// job.Keeper.
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
	text, err := fs.ReadAll(f, maxProject)
	if err != nil {
		return nil
	}
	return text
}
