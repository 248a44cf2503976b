package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// place says where a project's files are.
type place struct {
	dir   string // absolute
	file  string // root file below dir; empty: the default
	lock  string // path of the lock file
	state string // state directory
	store string // directory of the store
	home  string // for a copy on another machine: the project's directory on its own machine; empty: dir is no copy
}

// place finds the project that the command line names.
func (a *app) place() (place, error) {
	dir, file := a.chdir, ""
	if a.file != "" {
		path := a.file
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.chdir, path)
		}
		dir, file = filepath.Split(path)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return place{}, err
	}
	named := dir
	if dir, err = filepath.EvalSymlinks(dir); err == nil {
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			err = errors.New("it is a file")
		}
	} else if errors.Is(err, os.ErrNotExist) {
		err = errors.New("it is not there")
	}
	if err != nil {
		return place{}, hint("Name the project's directory with -chdir=DIR, or its file with -f=FILE.",
			"project directory %s: %w", named, err)
	}
	p := place{dir: dir, file: file, lock: filepath.Join(dir, "benchgraph.lock.hcl")}
	p.state, err = filepath.Abs(cmp.Or(a.env["BENCHGRAPH_STATE_DIR"], filepath.Join(dir, ".benchgraph")))
	if err == nil {
		p.store, err = filepath.Abs(cmp.Or(a.env["BENCHGRAPH_CACHE_DIR"], filepath.Join(p.state, "store")))
	}
	if err != nil {
		return p, err
	}
	for _, path := range []string{p.dir, p.state, p.store} {
		if !utf8.ValidString(path) { // JSON would change it, for sandboxes and results
			return p, hint("Rename it, or use another directory.", "the path %q is not UTF-8", path)
		}
	}
	return p, nil
}

// below returns a path of the command line, which is relative to -chdir.
func (a *app) below(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.chdir, path)
}

// absent reports whether there is no project file. Then no state directory may be made.
func (p place) absent() bool {
	names := hclspec.RootFiles[:]
	if p.file != "" {
		names = []string{p.file}
	}
	return !slices.ContainsFunc(names, func(name string) bool { return fileExists(filepath.Join(p.dir, name)) })
}

// above returns a sentence about the nearest project above, but none above the git repository; "" if there is none.
func (p place) above() string {
	for dir := p.dir; dir != filepath.Dir(dir) && !fileExists(filepath.Join(dir, ".git")); {
		if dir = filepath.Dir(dir); !(place{dir: dir}).absent() {
			return " There is a project in " + dir + ": -chdir=" + dir + " uses it."
		}
	}
	return ""
}

// prepare creates the state directory, with a .gitignore: its content belongs to this machine.
func (p place) prepare() error {
	const remedy = "Choose another directory with BENCHGRAPH_STATE_DIR."
	if err := os.MkdirAll(p.state, 0o755); err != nil {
		return hint(remedy, "state directory: %w", err)
	}
	dir, err := filepath.EvalSymlinks(p.state)
	if err == nil {
		err = fs.CheckOwner(dir)
	}
	if err != nil {
		return hint(remedy, "state directory: %w", err)
	}
	// Trees are checked out from mirrors, and downloads resume from partial files.
	for _, name := range []string{"mirrors", "downloads"} {
		if err := fs.CheckOwner(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return hint("It may be removed: it is then made anew.", "state directory: %w", err)
		}
	}
	ignore := filepath.Join(p.state, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
			return hint(remedy, "state directory: %w", err)
		}
	}
	return nil
}

func (p place) memo() string { return filepath.Join(p.state, "memo") }

func (p place) history() string { return filepath.Join(p.state, "history") }

func (p place) applyLock() string { return filepath.Join(p.state, "apply.lock") }

// maxLock bounds the size of a lock file, in bytes: benchgraph writes no larger one.
const maxLock = 32 << 20

// readLock returns the text of the lock file; empty if there is none.
func (p place) readLock() ([]byte, error) {
	src, err := fs.ReadFile(p.lock, maxLock)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if errors.Is(err, fs.ErrIrregular) {
		return nil, hint("Move it away, or restore it from version control.", "lock file %w", err)
	} else if _, tooLong := errors.AsType[*fs.TooLong](err); tooLong {
		return nil, hint("Restore it from version control, or delete it: benchgraph plan looks everything up again.",
			"lock file %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return src, nil
}

// loadLock reads the lock file; a missing one is empty.
func (p place) loadLock() (*lockfile.Lock, error) {
	text, err := p.readLock()
	if err != nil {
		return nil, err
	}
	return p.parseLock(text)
}

func (p place) parseLock(src []byte) (*lockfile.Lock, error) {
	name := filepath.Base(p.lock)
	lock, diags := lockfile.Parse(src, name)
	if diags.HasErrors() {
		return nil, &diagError{diags, map[string]*hcl.File{name: {Bytes: src}}}
	}
	return lock, nil
}

// hostOptions are the options for running commands of this state, and for ending them after a kill.
func (p place) hostOptions() executor.HostOptions {
	return executor.HostOptions{Owner: p.state, Guarded: p.home != ""}
}

// elsewhereStored adds to an error of a store that cannot be written how to choose another store.
func (p place) elsewhereStored(err error) error {
	if errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission) {
		return hint("Nothing can be written to "+p.store+". BENCHGRAPH_CACHE_DIR=DIR names another store.", "%w", err)
	}
	return err
}

// logOf returns the path of an attempt's log.
func (p place) logOf(attempt string) string { return filepath.Join(p.state, "logs", attempt+".log") }
