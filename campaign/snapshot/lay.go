package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
)

// Files are the paths of the copy of a project.
type Files struct {
	Dir     string // the project's directory, absolute
	History string
	Lock    string
	Patch   string // of a candidate that the file does not declare; may be missing
	Found   *Found
}

// Store is the store of a machine with the shared store behind it.
type Store interface {
	Ask(ctx context.Context, key cache.Key) (cache.Entry, error)
	Get(ctx context.Context, key cache.Key, verify bool) (cache.Entry, error)
}

// Bring takes a snapshot from the shared store, and copies it into the directory dir, which it makes.
func Bring(ctx context.Context, store Store, key cache.Key, dir string) (*Files, error) {
	_, err := store.Ask(ctx, key)
	var e cache.Entry
	if err == nil {
		e, err = store.Get(ctx, key, true) // verify, since somebody may have changed a file on this machine
	}
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	return Lay(e, dir)
}

// Lay copies a snapshot into an empty directory, and returns the paths of the project there. The entry comes from
// anybody who can write to the shared store, so Lay writes nothing outside the directory, and refuses files that do not
// have the entry's key.
func Lay(e cache.Entry, dir string) (*Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := map[string]line{}
	for i := range e.Files {
		f := &e.Files[i]
		if f.Link != "" {
			return nil, fmt.Errorf("%s is a link", f.Path)
		}
		if all[f.Path], err = lay(root, f.Path, filepath.Join(e.Dir, filepath.FromSlash(f.Path))); err != nil {
			return nil, err
		}
	}
	d := cache.Describe(Address)
	write(d, all)
	if d.Key() != e.Key {
		return nil, errors.New("its files are not those that its key stands for")
	}
	return open(root)
}

// lay copies a file, and returns its digest and whether it can be executed.
func lay(root *os.Root, name, from string) (l line, err error) {
	in, err := os.Open(from)
	if err != nil {
		return l, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err == nil {
		err = root.MkdirAll(path.Dir(name), 0o700)
	}
	if err != nil {
		return l, err
	}
	mode := os.FileMode(0o600)
	if l.exec = info.Mode()&0o100 != 0; l.exec {
		mode = 0o700
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return l, err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	l.sha256 = hex.EncodeToString(h.Sum(nil))
	return l, errors.Join(err, out.Close())
}

// open reads the copied document, and makes the names that only need to exist.
func open(root *os.Root) (*Files, error) {
	text, err := root.ReadFile(documentFile)
	if err != nil {
		return nil, err
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Found == nil {
		return nil, fmt.Errorf("%s has no facts about the project", documentFile)
	}
	project, err := root.OpenRoot(path.Clean(projectPart))
	if err != nil {
		return nil, err
	}
	defer project.Close()
	if err := doc.make(project); err != nil {
		return nil, err
	}
	dir := filepath.Join(root.Name(), projectPart)
	return &Files{Dir: dir, Found: doc.Found, Lock: filepath.Join(dir, lockFile),
		History: filepath.Join(root.Name(), historyFile), Patch: filepath.Join(root.Name(), patchFile)}, nil
}

// make makes the names that only need to exist, and the links and directories of build contexts.
func (d *document) make(project *os.Root) error {
	for _, name := range d.Folders {
		if err := project.MkdirAll(name, 0o700); err != nil {
			return err
		}
	}
	for _, name := range d.Present {
		err := project.MkdirAll(path.Dir(name), 0o700)
		if err == nil {
			err = project.WriteFile(name, nil, 0o600)
		}
		if err != nil {
			return err
		}
	}
	for _, b := range d.Found.Builds {
		for _, f := range b.Files {
			at := path.Join(b.Dir, f.Path)
			var err error
			switch {
			case f.Mode.IsDir():
				err = project.MkdirAll(at, 0o700)
			case f.Mode&os.ModeSymlink != 0:
				if err = project.MkdirAll(path.Dir(at), 0o700); err == nil {
					err = project.Symlink(f.Link, at)
				}
			}
			if err != nil && !errors.Is(err, os.ErrExist) { // two builds may have one context
				return err
			}
		}
	}
	return nil
}
