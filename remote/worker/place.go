package worker

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"

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

// RemoveGiven removes the files of variables, when the project has been read: they may hold secrets, and commands
// without a sandbox could read them.
func RemoveGiven(paths []string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// Hides returns the directories that commands in a sandbox must not see: those of the project, and those with requests.
// File is that of this request.
func Hides(r *remote.Request, file string) []string {
	dirs := []string{r.Dir, r.State, r.Store, filepath.Dir(file)}
	if r.WorkDir != "" {
		dirs = append(dirs, r.WorkDir)
	}
	return dirs
}

// TakeRequest reads what a job is to run from a file, and removes the file, before anything else runs that could read
// it. The file stays in the directory of jobs, where the machine with the project and another run of the job read it,
// but without the credentials that were lent to this job.
func TakeRequest(path string) (*remote.Request, error) {
	r, err := remote.ReadRequest(path)
	if err != nil {
		return nil, err
	}
	if fs.Below(path, r.WorkDir) {
		if r.Login == nil {
			return r, nil
		}
		kept := *r
		kept.Login = nil
		return r, kept.Write(path)
	}
	return r, os.Remove(path)
}

// StoreDir returns the directory of the store of a worker, which its environment may give.
func StoreDir(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	own := filepath.Join(os.TempDir(), fmt.Sprintf("benchgraph-store-%d", os.Getuid()))
	if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, iofs.ErrExist) {
		return "", err
	}
	return own, nil
}
