// Package mirror keeps the bare copy of a foreign repository: it follows the location, fetches what is missing, tries
// again what may pass, and says which commit a revision stands for.
package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git/command"
)

// Options says which repository is mirrored, and where.
type Options struct {
	Exec executor.Executor
	// of the bare mirror, absolute; made when it is missing; emptied when it mirrors another Location
	Dir      string
	Location string    // URL, scp-like address, path of a repository (work tree or bare), or bundle file
	Env      []string  // the caller's environment: PATH, HOME, proxies, certificates and ssh settings are taken from it
	Log      io.Writer // gets what git complains of, perhaps from several goroutines; nil: discarded
	Offline  bool      // never reach for the network: what is not in the mirror is an error
}

// Mirror is the bare copy of one repository. It is safe for concurrent use, also by several processes.
type Mirror struct {
	Git      command.Git // runs in the mirror
	Dir      string
	location string
	Shown    string // location without a password, for people
	kind     kind
	local    local // of a repository on this machine
	Offline  bool
	Backoff  time.Duration // before the second attempt at a fetch

	mu      sync.Mutex
	fetched map[string]bool // what was asked of the location already, so that it is asked once
	offers  *bool           // whether the server can leave objects out; nil: it was not asked yet
	entire  bool            // it can, and then does not give them: all is fetched
}

// Resolved is what a revision stands for: 40 hexadecimal digits each.
type Resolved struct {
	Commit string
	Tree   string
}

const (
	cleanAfter   = 24 * time.Hour // a scratch directory older than this belongs to nobody
	firstBackoff = time.Second
)

var fullHash = lazyregexp.New(`^[0-9a-f]{40}$`)

// IsHash reports whether a text is the whole name of an object: 40 hexadecimal digits.
func IsHash(text string) bool { return fullHash().MatchString(text) }

// Open prepares a mirror. See git.Open.
func Open(ctx context.Context, o Options) (*Mirror, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("mirror directory %q: not absolute", o.Dir)
	}
	m := &Mirror{
		Dir: filepath.Clean(o.Dir), location: o.Location, Offline: o.Offline,
		Backoff: firstBackoff, fetched: map[string]bool{},
	}
	m.Git = command.Git{Exec: o.Exec, Dir: m.Dir, Env: command.Environment(o.Env, m.Dir), Log: o.Log}
	if o.Log == nil {
		m.Git.Log = io.Discard
	}
	m.Shown, m.Git.Secrets = redact(o.Location)
	var err error
	if m.kind, err = kindOf(o.Location); err != nil {
		return nil, fmt.Errorf("repository %s: %w", m.Shown, err)
	}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", m.Shown, err)
	}
	if m.kind == repository {
		if m.local, err = m.inspect(ctx); err != nil {
			return nil, err
		}
	}
	if err := m.prepare(ctx); err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", m.Shown, err)
	}
	return m, nil
}

// prepare creates the bare repository if it does not exist. A repository that lost a part that git needs is created
// again: everything in it can be fetched.
func (m *Mirror) prepare(ctx context.Context) error {
	if m.ready() {
		return nil
	}
	return m.exclusively(ctx, func() error {
		if m.ready() {
			return nil
		}
		return m.fill(ctx)
	})
}

// id returns the identity of the mirrored repository.
func (m *Mirror) id() string {
	sum := sha256.Sum256([]byte(m.location + "\x00" + m.local.objects))
	return hex.EncodeToString(sum[:])
}

// ready says that the bare repository is there, and of the right location.
func (m *Mirror) ready() bool {
	have, err := os.ReadFile(filepath.Join(m.Dir, readyName))
	return err == nil && string(have) == m.id() && m.whole()
}

// fill makes the bare repository anew. The caller holds the mirror's lock.
func (m *Mirror) fill(ctx context.Context) error {
	if err := m.empty(); err != nil {
		return err
	}
	if _, err := m.Git.Output(ctx, command.Call{Args: []string{"init", "--quiet", "--bare",
		"--template="}}); err != nil {
		return err
	}
	for name, text := range m.files() {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(m.Dir, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := settle(m.Dir); err != nil {
		return err
	}
	return fs.Replace(filepath.Join(m.Dir, readyName), []byte(m.id()))
}

// whole says that the mirror has what makes a directory a repository for git.
func (m *Mirror) whole() bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(m.Dir, name)); err != nil {
			return false
		}
	}
	return true
}

// files is what a new mirror holds beside what git puts there.
func (m *Mirror) files() map[string]string {
	f := map[string]string{
		command.ConfigName: command.Config,
		// HEAD is a ref like any other, so that a fetch can set it.
		"HEAD": "ref: " + headRef + "\n",
		// These win over every .gitattributes in a tree: bytes are laid out and patched as they are stored.
		"info/attributes": "* -text !eol -ident -filter !working-tree-encoding -whitespace\n",
	}
	if m.kind == repository {
		// Borrowing is safe because a mirror only reads. What must not go away is copied: see Keep.
		f["objects/info/alternates"] = m.local.objects + "\n"
	}
	return f
}

// empty removes everything in the mirror but its lock.
func (m *Mirror) empty() error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(m.Dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

const (
	headRef       = "refs/benchgraph/HEAD"
	lockName      = "benchgraph-lock"
	readyName     = "benchgraph-ready"
	scratchPrefix = "benchgraph-scratch-"
)

// Scratch makes a directory in the mirror; one that is left behind is removed a day later.
func (m *Mirror) Scratch() (string, error) { return os.MkdirTemp(m.Dir, scratchPrefix) }

// exclusively runs f while nobody else, in this process or another, writes to the mirror.
func (m *Mirror) exclusively(ctx context.Context, f func() error) error {
	lock, err := os.OpenFile(filepath.Join(m.Dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // which also unlocks
	for {              // in steps, so that the wait ends with ctx
		switch err := fs.LockWithin(lock, fs.Exclusive, 50*time.Millisecond); {
		case err == nil:
			m.sweep()
			return f()
		case !fs.Held(err):
			return fmt.Errorf("lock: %w", err)
		case ctx.Err() != nil:
			return fmt.Errorf("lock: %w", context.Cause(ctx))
		}
	}
}

// sweep removes the leftovers of killed processes. It runs under the lock, when no file of these names can belong to a
// living writer; scratch directories are used without the lock, so only old ones are removed. Errors are ignored: git
// reports them better.
func (m *Mirror) sweep() {
	for _, pattern := range []string{"*.lock", "refs/*/*.lock", "objects/info/*.lock", "objects/pack/tmp_*",
		"objects/tmp_*", "objects/??/tmp_obj_*"} {
		stale, _ := filepath.Glob(filepath.Join(m.Dir, pattern))
		for _, path := range stale {
			os.Remove(path)
		}
	}
	scratch, _ := filepath.Glob(filepath.Join(m.Dir, scratchPrefix+"*"))
	for _, path := range scratch {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > cleanAfter {
			os.RemoveAll(path)
		}
	}
}

// settle makes all that is in a directory durable: a mirror is not called ready when a loss of power could leave it
// with empty files, such as the one that keeps git from changing the ends of lines.
func settle(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return fs.Sync(path)
	})
}
