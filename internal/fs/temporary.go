package fs

import (
	"cmp"
	"os"
	"path/filepath"
	"syscall"
)

// Temporary is a directory that belongs to this process while the process lives.
type Temporary struct {
	Path string
	lock *os.File // the directory, locked: shows other processes that this one lives
}

// NewTemporary makes a directory in another one ("": that for temporary files), with a name that begins with prefix.
// It removes directories with that prefix that killed processes of this user have left. On file systems that cannot
// lock directories, these stay.
func NewTemporary(in, prefix string) (*Temporary, error) {
	in = cmp.Or(in, os.TempDir())
	left, _ := filepath.Glob(filepath.Join(in, prefix+"*")) // what cannot be removed stays for a later process
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
		// another process considered the directory a leftover
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

// Remove removes the directory with its content.
func (t *Temporary) Remove() error {
	err := RemoveTree(t.Path)
	if t.lock != nil {
		t.lock.Close()
	}
	return err
}
