// Package disk is the store of one machine: entries in a directory, written once, shared by any number of processes.
package disk

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk/rounds"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// formatName and formatVersion are the content of a store's format file. A newer benchgraph may lay a store out in
// another way.
const (
	formatFile    = "format"
	formatName    = "benchgraph store "
	formatVersion = 1
)

// gcPatience is how long opening a store waits for the garbage collection of another process.
const gcPatience = time.Minute

// Disk is a Store in a directory of this machine. Any number of processes may use one at the same time.
//
// Its layout: entries/<2 digits>/<key>/ holds an entry (meta, and its files below out). content/<2 digits>/<content
// key> is a symbolic link whose target is the key. blobs/<2 digits>/<SHA-256> is another name of a file that entries
// share. tmp/ holds entries in the making, quarantine/ damaged entries. In the file claims, processes lock one byte for
// each entry that they make. There is no index, which could disagree with the entries: looking a directory up is faster
// than reading an index.
type Disk struct {
	Mended string // what Open repaired, for people; empty: nothing

	dir  string   // absolute, without links
	lock *os.File // shared lock, held as long as the store is open, so that no process collects garbage

	entries *os.File // the directory entries

	rounds *rounds.Rounds // nil: files are synced one by one

	mu      sync.Mutex
	claim   *os.File // locked file beside scratch; nil until Scratch is called
	scratch string   // this Disk's directory under tmp
	claims  fs.Claims
}

var _ cache.Store = (*Disk)(nil)

// Open opens the store in dir, and makes the store if dir is missing or empty. It refuses a directory that others can
// write to, that is something else, or that a newer version made. It removes the scratch directories of dead processes.
func Open(dir string) (*Disk, error) {
	d, err := openDisk(dir)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	return d, nil
}

func openDisk(dir string) (*Disk, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if err := fs.CheckOwner(dir); err != nil {
		return nil, err
	}
	mended, err := checkFormat(dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{dir: dir, Mended: mended, claims: fs.Claims{Path: filepath.Join(dir, "claims")}}
	for _, sub := range []string{"entries", "content", "blobs", "tmp", "quarantine"} {
		if err := os.Mkdir(d.path(sub), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if err := d.checkShelves(sub); err != nil {
			return nil, err
		}
	}
	if d.entries, err = os.Open(d.path("entries")); err != nil {
		return nil, err
	}
	if d.lock, err = openLock(d.path("lock")); err != nil {
		d.entries.Close()
		return nil, err
	}
	if err := fs.LockWithin(d.lock, fs.Shared, gcPatience); err != nil {
		d.lock.Close()
		d.entries.Close()
		return nil, fmt.Errorf("another process is collecting garbage in it: %w", err)
	}
	if d.rounds, err = rounds.Open(d.entries); err != nil {
		d.lock.Close()
		d.entries.Close()
		return nil, err
	}
	d.sweep()
	return d, nil
}

// Writable returns why nothing can be made in some directory of the store in dir, which need not exist; nil if it can.
func Writable(dir string) error {
	err := fs.Writable(dir)
	for _, below := range []string{"tmp", "entries", "content", "blobs", "entries/??", "content/??", "blobs/??"} {
		some, _ := filepath.Glob(filepath.Join(dir, below))
		for _, sub := range some {
			err = cmp.Or(err, fs.Writable(sub))
		}
	}
	return err
}

// checkShelves makes sure that this user owns a directory of the store and its subdirectories. The owners of entries
// are checked when the entries are read.
func (d *Disk) checkShelves(sub string) error {
	if err := fs.CheckOwner(d.path(sub)); err != nil {
		return err
	}
	if sub != "entries" && sub != "content" && sub != "blobs" {
		return nil
	}
	shelves, err := os.ReadDir(d.path(sub))
	if err != nil {
		return err
	}
	for _, shelf := range shelves {
		if len(shelf.Name()) == 2 && !shelf.IsDir() {
			return fs.CheckOwner(d.path(sub, shelf.Name()))
		}
	}
	return nil
}

// openLock opens the file by which processes share the store. In a store that is read-only, the file cannot be made and
// need not be: no process can collect garbage there.
func openLock(path string) (*os.File, error) {
	f, err := fs.MakeOwn(path, 0)
	if errors.Is(err, unix.EROFS) || errors.Is(err, os.ErrPermission) {
		f, err = os.Open(path)
	}
	return f, err
}

// checkFormat makes sure that a directory is a store of a known version, and makes an empty directory a store. It
// writes a missing or damaged format file anew, since the entries can be checked without it, and returns in mended what
// it did.
func checkFormat(dir string) (mended string, err error) {
	path := filepath.Join(dir, formatFile)
	text, err := fs.ReadOwn(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	missing := err != nil
	number, named := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), formatName)
	version, err := strconv.Atoi(number)
	switch {
	case missing && isStore(dir):
		mended = fmt.Sprintf("store %s: its file %s was missing and is written anew", dir, formatFile)
	case missing:
		if err := checkEmpty(dir); err != nil {
			return "", err
		}
	case named && err == nil && version > formatVersion:
		return "",
			fmt.Errorf("it has format %d, and this version knows formats up to %d: use a newer benchgraph, or "+
				"another directory", version, formatVersion)
	case named && err == nil:
		return "", nil
	case isStore(dir):
		aside := path + ".damaged"
		// another process may have moved it
		if err := os.Rename(path, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		mended = fmt.Sprintf("store %s: its file %s was damaged (%.40q); it is moved to %s and written anew", dir,
			formatFile, text, aside)
	default:
		return "",
			fmt.Errorf("its file %s is damaged (%.40q), and it does not look like a store: choose another directory",
				formatFile, text)
	}
	return mended, fs.Replace(path, fmt.Appendf(nil, "%s%d\n", formatName, formatVersion))
}

// isStore reports whether a directory has the subdirectories that every store has.
func isStore(dir string) bool {
	return !slices.ContainsFunc([]string{"entries", "content", "blobs"}, func(sub string) bool {
		info, err := os.Lstat(filepath.Join(dir, sub))
		return err != nil || !info.IsDir()
	})
}

// checkEmpty makes sure that a directory has no files of others.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Another process may be writing the format file now, under a temporary name.
		if !strings.HasPrefix(e.Name(), "."+formatFile+"-") && e.Name() != formatFile {
			return fmt.Errorf("it is not a store (it has no file named %s) and not empty: choose another directory",
				formatFile)
		}
	}
	return nil
}

// Close closes the store, and removes scratch directories that did not become entries.
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if d.claim != nil {
		err = errors.Join(fs.RemoveTree(d.scratch), os.Remove(d.claim.Name()), d.claim.Close())
		d.claim, d.scratch = nil, ""
	}
	return errors.Join(err, d.claims.Close(), d.entries.Close(), d.lock.Close())
}

// Claim makes the caller the only one who makes the entry of a key, until it calls release. ok is false while another
// caller has the claim. See fs.Claims.
func (d *Disk) Claim(key cache.Key) (release func(), ok bool) { return d.claims.Claim(key) }

func (d *Disk) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// Scratch makes an empty directory on the store's file system, which Put can turn into an entry. It is removed when the
// store is closed, or when a later process finds that this process died.
func (d *Disk) Scratch() (string, error) {
	dir, err := d.scratchName()
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("store %s: scratch directory: %w", d.dir, err)
	}
	return dir, nil
}

// scratchName returns a path for a scratch directory, at which nothing exists yet. The name is random, since commands
// see it: a number would tell a candidate how far the apply has come, and so which checks are over.
func (d *Disk) scratchName() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claim == nil {
		if err := d.claimScratch(); err != nil {
			return "", err
		}
	}
	return filepath.Join(d.scratch, fmt.Sprintf("%08x", rand.Uint32())), nil
}

// isScratch reports whether Scratch made a directory.
func (d *Disk) isScratch(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.claim != nil && filepath.Dir(dir) == d.scratch
}

// claimScratch makes this Disk's directory under tmp. The locked file beside it shows that its owner lives.
func (d *Disk) claimScratch() error {
	for {
		f, err := os.CreateTemp(d.path("tmp"), strconv.Itoa(os.Getpid())+"-*.lock")
		if err != nil {
			return err
		}
		// A sweep may come between the making and the locking of the file; then the sweep removes the file.
		if fs.TryLock(f, fs.Exclusive) != nil || !fs.IsAt(f, f.Name()) {
			f.Close()
			continue
		}
		d.claim, d.scratch = f, strings.TrimSuffix(f.Name(), ".lock")
		return os.Mkdir(d.scratch, 0o755)
	}
}

// sweep removes the directories of dead processes under tmp. A directory that cannot be removed now is left to a later
// sweep, since it is in nobody's way.
func (d *Disk) sweep() {
	names, _ := os.ReadDir(d.path("tmp"))
	for _, entry := range names {
		name := d.path("tmp", entry.Name())
		if !strings.HasSuffix(name, ".lock") {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if fs.TryLock(f, fs.Exclusive) == nil && fs.IsAt(f, name) {
			if fs.RemoveTree(strings.TrimSuffix(name, ".lock")) == nil {
				_ = os.Remove(name)
			}
		}
		f.Close()
	}
}
