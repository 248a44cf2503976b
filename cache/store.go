// Package cache keeps results by what determined them.
//
// A result is a tree of files. Its Key says what went in (the SHA-256 of a readable Description); its Digest says what
// came out. Entries are written once, whole, and never changed in place, so any number of processes may share a store.
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

// Meta is what an entry says of itself.
type Meta struct {
	Key Key `json:"key"`
	// own description + digests of the inputs' bytes; the second way to find the entry; zero: there is none
	Content    Key           `json:"content"`
	Digest     string        `json:"digest"`  // SHA-256 over the list of files: equal digests are equal results
	Address    string        `json:"address"` // the node that made it first, for people
	Text       string        `json:"text"`    // the description the Key was made from
	Files      []File        `json:"files"`
	Bytes      int64         `json:"bytes"` // sum of the sizes
	Created    time.Time     `json:"created"`
	Duration   time.Duration `json:"duration"`      // of the attempt that made it
	Log        string        `json:"log,omitempty"` // attempt whose complete log tells how it was made
	Transcript string        `json:"-"`             // what that attempt ran, as one line of JSON; empty: not known
	Signature  string        `json:"-"`             // with which it came from a shared store; empty: it was made here

	Looked Look `json:"-"` // at the directory of the entry, when Get returned this
}

// Entry is one stored result.
type Entry struct {
	Meta
	Dir string // absolute directory of the files; read-only
}

// Draft is a result that is to become an entry.
type Draft struct {
	Meta
	Dir   string   // a scratch directory of the store: what is in its FilesDir is the result, all else is removed
	Log   *os.File // tells how it was made: durable before the entry is visible; nil: there is none
	Waits func()   // called when nothing but the disk is waited for any more; nil: nobody wants to know
}

// ErrMiss is wrapped by every error that means: there is no such entry. Its text says why.
var ErrMiss = errors.New("not in the store")

// ErrDamaged is wrapped, beside ErrMiss, by the error for an entry that was there and cannot be served.
var ErrDamaged = errors.New("damaged")

// Damage is why an entry cannot be served, now or ever. Other errors (no file descriptor left, say) condemn no entry.
type Damage string

func (d Damage) Error() string { return string(d) }

// Is makes a damage an ErrDamaged.
func (d Damage) Is(target error) bool { return target == ErrDamaged }

// Look is what the directory of an entry told beside names and sizes. The zero value is of no look.
type Look struct {
	Meta  int64  // bytes of the meta file
	First uint64 // hash of the inode and time of the first file, another one in another result; 0: there is no file
}

// FilesDir is the directory of an entry that holds its files.
const FilesDir = "out"

// Outline is what the directory of an entry tells of it: as much as Get looks at without verify, kept by whoever has
// looked before. Of its Files only the paths, the sizes and whether they are links count.
type Outline struct {
	Key Key
	Look
	Files []File
}

// Result is as much of a result as its outline and its digest tell.
func (o *Outline) Result(digest string) Meta {
	return Meta{Key: o.Key, Digest: digest, Files: o.Files, Looked: o.Look}
}

// Store keeps entries.
//
// Get returns the whole entry of a key, or an error that wraps ErrMiss and says why (never stored, damaged, truncated);
// a damaged entry is moved out of the way. With verify, every byte is read and checked; without it only what the
// operating system's directory tells (names and sizes). Find is Get by content key. Put takes over the files of a
// draft, computes sizes, digests and Digest, and makes the entry visible in one step. When it returns, the entry and
// the log survive a loss of power. If the key is there already, that entry wins and is returned. A cancelled ctx ends
// the reading of the files, and not the waiting for the disk.
type Store interface {
	Get(ctx context.Context, key Key, verify bool) (Entry, error)
	Find(ctx context.Context, content Key) (Entry, error)
	Put(ctx context.Context, draft Draft) (Entry, error)
}
