package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote"
)

// WriteGiven writes the files of variables into a directory, and returns their paths.
func WriteGiven(p *remote.Project, dir string) (paths []string, err error) {
	for i, given := range p.VarFiles {
		path := filepath.Join(dir, strconv.Itoa(i)+filepath.Ext(filepath.Base(given.Name)))
		if err := os.WriteFile(path, given.Text, 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// RemoveGiven removes the files of variables after the project was read: they may hold secrets, and commands without a
// sandbox could read them.
func RemoveGiven(paths []string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// Hides returns the directories that commands in a sandbox must not see: those of the project, and those with requests.
// file is that of this request.
func Hides(r *remote.Request, file string) []string {
	dirs := []string{r.Dir, r.State, r.Store, filepath.Dir(file)}
	if r.WorkDir != "" {
		dirs = append(dirs, r.WorkDir)
	}
	return dirs
}

// TakeRequest reads a request from a file, and removes the file before anything else runs that could read it. key is
// the encryption key of the file; "" if it is not encrypted.
func TakeRequest(path, key string) (*remote.Request, error) {
	r, err := readRequest(path, key)
	if errors.Is(err, iofs.ErrNotExist) {
		err = fmt.Errorf("%w; the first run of a job removes its request", err)
	}
	if err != nil {
		return nil, err
	}
	return r, os.Remove(path)
}

// maxRequest bounds a request, in bytes.
const maxRequest = 64 << 20

func readRequest(path, key string) (*remote.Request, error) {
	f, _, err := fs.OpenOwn(path) // the content is run, so it must not be of another user
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := fs.ReadAll(f, maxRequest)
	if err == nil && key != "" {
		text, err = job.Decrypt(text, key)
	}
	r := &remote.Request{}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, err
	}
	if r.Address == "" || r.Dir == "" || r.Owner == "" || r.Key.IsZero() || r.Snapshot.IsZero() {
		return nil, errors.New("the request names no project, node, key or snapshot")
	}
	return r, nil
}

// StoreDirs returns the directory of the store for a request, which may be below the job's directory, and the directory
// of images of Apptainer, which all jobs on a node share. given comes from the environment; it may be "". If somebody
// else has made the shared directory, both are below the job's directory, and note says so.
func StoreDirs(given, job string, r *remote.Request, note func(string, ...any)) (store, images string, err error) {
	own := filepath.Join(job, "store")
	images, err = StoreDir(given)
	if err != nil && given == "" {
		note("Warning: this job uses a store of its own, so it downloads anew what other jobs on this machine have. "+
			"Name a directory for all jobs in BENCHGRAPH_CACHE_DIR, by setup in the executor block: %v", err)
		images, err = own, nil
	}
	if len(r.Names) > 0 { // the machine's store may have other results under these keys
		return own, images, err
	}
	return images, images, err
}

// StoreDir returns the directory of a worker's store: given, or one in the temporary directory.
func StoreDir(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	return ownDir("store")
}

// NameDisk adds to the failure for a full disk the name of this machine, and the directories of the worker's files.
func NameDisk(f *failure.Failure, given string) {
	host, _ := os.Hostname()
	store, _ := StoreDir(given)
	f.Message = "a disk of " + host + " is full: " + f.Message
	f.Remedy = fmt.Sprintf("free some space on %s, or have setup in the executor block name directories with more: "+
		"BENCHGRAPH_CACHE_DIR, now %s, and TMPDIR, now %s; for /dev/shm give the container more shared memory", host,
		store, os.TempDir())
}

// NewJobDir makes a directory for the files of a job. The directory above it holds those of all jobs of this user on
// this machine, and nothing else: a sandbox hides it, so that commands of a job see no files of another.
func NewJobDir() (*fs.Temporary, error) {
	jobs, err := ownDir("jobs")
	if err != nil { // somebody else has made it; then the sandbox hides all of the temporary directory
		return fs.NewTemporary("", "benchgraph-job-")
	}
	return fs.NewTemporary(jobs, "job-")
}

// ownDir returns a directory of this user in the temporary directory, where other users can make a directory of that
// name before.
func ownDir(name string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("benchgraph-%s-%d", name, os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, iofs.ErrExist) {
		return "", err
	}
	return dir, fs.CheckOwner(dir)
}
