package fs

import (
	"cmp"
	"os"
	"path/filepath"
	"syscall"
)

// Temporary is a directory of this process for as long as the process lives.
type Temporary struct {
	Path string
	lock *os.File // the directory, locked; another process sees by the lock that this one lives
}

// NewTemporary makes a directory in another one ("": that of temporary files). Its name begins with a prefix.
// Directories of the prefix that killed processes of this user left there are removed. A file system that locks no
// directory keeps them.
func NewTemporary(in, prefix string) (*Temporary, error) {
	in = cmp.Or(in, os.TempDir())
	left, _ := filepath.Glob(filepath.Join(in, prefix+"*")) // what cannot be removed is left to a later process
	for _, path := range left {
		if t, err := lockOwn(path); err == nil {
			_ = t.Remove()
		}
	}
	for {
		path, err := os.MkdirTemp(in, prefix)
		if err != nil {
			return nil, err
		}
		t, err := lockOwn(path)
		if err == nil && IsAt(t.lock, path) {
			return t, nil
		}
		if err != nil && !Held(err) && !os.IsNotExist(err) {
			return &Temporary{Path: path}, nil
		}
		// another process has taken the directory for one that was left
	}
}

// lockOwn locks a directory of this user.
func lockOwn(path string) (*Temporary, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Owned(info)
	}
	if err == nil {
		err = TryLock(f, Exclusive)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Temporary{path, f}, nil
}

// Remove removes the directory with all that is in it.
func (t *Temporary) Remove() error {
	err := RemoveTree(t.Path)
	if t.lock != nil {
		t.lock.Close()
	}
	return err
}
