// Package cache keeps results under keys that are made from everything that determined them.
//
// A result is a tree of files. Its Key is the SHA-256 of a readable Description of the inputs; its Digest is that of
// the output files. Entries are written once, whole, and never changed in place, so any number of processes may share a
// store.
package cache

import (
	"context"
	"errors"
	"os"
	"time"
)

// File is one file of an entry.
type File struct {
	Path   string `json:"path"`             // slash-separated, relative to the entry's directory
	Mode   uint32 `json:"mode"`             // permission bits (0o755 or 0o644)
	Size   int64  `json:"size"`             // bytes
	SHA256 string `json:"sha256,omitempty"` // of the bytes; empty for a link
	Link   string `json:"link,omitempty"`   // target of a symbolic link that stays inside the entry
}

// Meta describes an entry.
type Meta struct {
	Key Key `json:"key"`
	// key made with the digests of the inputs' bytes: the second way to find the entry; zero: there is none
	Content    Key           `json:"content"`
	Digest     string        `json:"digest"`  // SHA-256 over the list of files: equal digests are equal results
	Address    string        `json:"address"` // the node that made it first, for people
	Text       string        `json:"text"`    // description; the Key is its SHA-256
	Files      []File        `json:"files"`
	Bytes      int64         `json:"bytes"` // sum of the sizes
	Created    time.Time     `json:"created"`
	Duration   time.Duration `json:"duration"`      // of the attempt that made the entry
	Log        string        `json:"log,omitempty"` // ID of that attempt, whose log is complete
	Transcript string        `json:"-"`             // commands of that attempt, as one line of JSON; empty: not known
	Signature  string        `json:"-"`             // of an entry from a shared store; empty: made here

	Looked Look `json:"-"` // state of the entry's directory when Get returned this
}

// Entry is one stored result.
type Entry struct {
	Meta
	Dir string // absolute directory of the files; read-only
}

// Draft is a result that Put turns into an entry.
type Draft struct {
	Meta
	Dir   string   // a scratch directory of the store; its FilesDir is the result, the rest is removed
	Log   *os.File // log of the attempt, which becomes durable before the entry is visible; nil: there is none
	Waits func()   // called when only the disk is waited for; nil: no call
}

// ErrMiss is wrapped by every error that means that there is no entry. The text of the error says why.
var ErrMiss = errors.New("not in the store")

// ErrDamaged is wrapped, beside ErrMiss, by the error for an entry that was there and cannot be served.
var ErrDamaged = errors.New("damaged")

// Damage is the reason why an entry can never be served. Other errors (no file descriptor left, say) condemn no entry.
type Damage string

func (d Damage) Error() string { return string(d) }

// Is makes every Damage match ErrDamaged.
func (d Damage) Is(target error) bool { return target == ErrDamaged }

// Look is the state of an entry's directory beside names and sizes. The zero value means that nobody looked.
type Look struct {
	Meta  int64  // bytes of the meta file
	First uint64 // hash of the first file's inode and time, which differs between results; 0: there is no file
}

// FilesDir is the directory of an entry that holds its files.
const FilesDir = "out"

// Outline is the state of an entry's directory, as Get without verify checks it. Of Files, it has the paths, the sizes
// and whether they are links.
type Outline struct {
	Key Key
	Look
	Files []File
}

// Result returns the part of a Meta that an outline and a digest tell.
func (o *Outline) Result(digest string) Meta {
	return Meta{Key: o.Key, Digest: digest, Files: o.Files, Looked: o.Look}
}

// Store keeps entries.
//
// Get returns the whole entry of a key, or an error that wraps ErrMiss and says why (never stored, damaged, truncated);
// a damaged entry is moved out of the way. With verify, every byte is read and checked; without it, only names and
// sizes. Find is Get by content key. Put takes over the files of a draft, computes sizes, digests and Digest, and makes
// the entry visible in one step. When Put returns, the entry and the log survive a loss of power. If the store has an
// entry of the key already, Put returns that entry. A cancelled ctx ends the reading of the files, but not the waiting
// for the disk.
type Store interface {
	Get(ctx context.Context, key Key, verify bool) (Entry, error)
	Find(ctx context.Context, content Key) (Entry, error)
	Put(ctx context.Context, draft Draft) (Entry, error)
}
