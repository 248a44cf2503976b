// Package mirror keeps bare copies of foreign repositories: it follows the location, fetches missing objects, retries
// after temporary failures, and resolves revisions.
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

// Options say which repository to mirror, and where.
type Options struct {
	Exec executor.Executor
	// bare mirror, absolute; created if it is missing; emptied if it mirrors another Location
	Dir      string
	Location string    // URL, scp-like address, path of a repository (work tree or bare), or bundle file
	Env      []string  // the caller's environment, which provides PATH, HOME, proxies, certificates and ssh settings
	Log      io.Writer // gets git's messages, perhaps from several goroutines; nil: discarded
	Offline  bool      // do not use the network: objects that the mirror lacks are an error
}

// Mirror is the bare copy of a repository. It is safe for concurrent use, also by several processes.
type Mirror struct {
	Git      command.Git // runs in the mirror
	Dir      string
	location string
	Shown    string // location without password, for messages
	kind     kind
	local    local // a repository on this machine
	Offline  bool
	Backoff  time.Duration // before the second attempt of a fetch

	mu      sync.Mutex
	fetched map[string]bool // fetches that succeeded and are not repeated
	offers  *bool           // whether the server can leave objects out; nil: not asked yet
	entire  bool            // the server leaves objects out but does not send them later: fetch everything
}

// Resolved is the result of a revision; each field has 40 hexadecimal digits.
type Resolved struct {
	Commit string
	Tree   string
}

const (
	cleanAfter   = 24 * time.Hour // no running process uses a scratch directory older than this
	firstBackoff = time.Second
)

var fullHash = lazyregexp.New(`^[0-9a-f]{40}$`)

// IsHash reports whether a text is a full object name: 40 hexadecimal digits.
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

// prepare creates the bare repository if it does not exist. It creates a damaged one again: everything in it can be
// fetched.
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

// ready reports whether the bare repository exists and mirrors this location.
func (m *Mirror) ready() bool {
	have, err := os.ReadFile(filepath.Join(m.Dir, readyName))
	return err == nil && string(have) == m.id() && m.whole()
}

// fill creates the bare repository again. The caller must hold the mirror's lock.
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

// whole reports whether the mirror has the parts by which git recognizes a repository.
func (m *Mirror) whole() bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(m.Dir, name)); err != nil {
			return false
		}
	}
	return true
}

// files returns the files that a new mirror gets in addition to git's.
func (m *Mirror) files() map[string]string {
	f := map[string]string{
		command.ConfigName: command.Config,
		// HEAD refers to an ordinary ref, so that a fetch can set it.
		"HEAD": "ref: " + headRef + "\n",
		// These override every .gitattributes in a tree: bytes are written and patched as they are stored.
		"info/attributes": "* -text !eol -ident -filter !working-tree-encoding -whitespace\n",
	}
	if m.kind == repository {
		// Borrowing is safe because a mirror only reads. Objects that must not vanish are copied: see Keep.
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

// Scratch makes a directory in the mirror. A leftover directory is removed after a day.
func (m *Mirror) Scratch() (string, error) { return os.MkdirTemp(m.Dir, scratchPrefix) }

// exclusively runs f while nobody else, in this process or another, writes to the mirror.
func (m *Mirror) exclusively(ctx context.Context, f func() error) error {
	lock, err := os.OpenFile(filepath.Join(m.Dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // closing also unlocks
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

// sweep removes leftovers of killed processes. It runs under the lock, so no living writer owns a file with one of
// these names. Scratch directories are used without the lock, so only old ones are removed. It ignores errors: git
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

// settle syncs all files in a directory to disk. Otherwise, after a loss of power, a mirror that is marked ready
// could have empty files, such as the one that keeps git from changing line ends.
func settle(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return fs.Sync(path)
	})
}
