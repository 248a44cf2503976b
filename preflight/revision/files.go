// Package revision reads files of revisions in rounds. Within a round, a file that was not read yet is Unknown; between
// two rounds, all such files are read at once.
package revision

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
)

// Tree is a revision, perhaps with a patch on top. The zero Tree means that there is none.
type Tree struct {
	Repo    string
	Rev     string // 40 digits
	Patched string // paths that the patch touches, one a line
}

// IsZero reports whether there is no tree.
func (t Tree) IsZero() bool { return t.Rev == "" }

// Reader reads files of revisions. It gets all questions of one round at once.
type Reader interface {
	// Dirs lists directories. A directory that does not exist is missing from the result.
	Dirs(ctx context.Context, at []Place) (map[Place][]Entry, error)
	// Files returns contents by ID; nil for a file that is too large.
	Files(ctx context.Context, repo string, ids []string) (map[string][]byte, error)
}

// Place is a path of a revision of a repo.
type Place struct{ Repo, Rev, Path string }

// Entry is one name of a directory.
type Entry struct {
	Name      string
	Dir, Link bool
	ID        string
}

// Files caches the files of revisions. A file that is not in the cache is noted, and read for the next round together
// with all others that this round asked for.
type Files struct {
	r         Reader
	dirs      map[Place]map[string]Entry // nil: there is no such directory
	blobs     map[string][]byte          // by ID
	wantDirs  map[Place]bool
	wantBlobs map[string]map[string]bool // IDs by repo
	lost      func(rev string) string    // why a revision cannot be read; empty: it can
	broken    string                     // the error after which nothing more is read; empty: none
}

func New(r Reader, lost func(rev string) string) *Files {
	return &Files{r: r, lost: lost, dirs: map[Place]map[string]Entry{}, blobs: map[string][]byte{},
		wantDirs: map[Place]bool{}, wantBlobs: map[string]map[string]bool{}}
}

// State is the known state of a path.
type State int

const (
	Unknown State = iota // not read yet, cannot be read, changed by a patch, or behind a link
	Absent
	IsFile
	IsDir
)

// Unreadable returns why a tree cannot be read; "" if it can.
func (f *Files) Unreadable(t Tree) string { return cmp.Or(f.lost(t.Rev), f.broken) }

// Stat returns the state of a path in a tree, and the ID of a file.
func (f *Files) Stat(t Tree, name string) (State, string) {
	if t.IsZero() {
		return Unknown, ""
	}
	name = path.Clean(name)
	if name == "." {
		return IsDir, ""
	}
	if strings.HasPrefix(name, "../") || name == ".." || path.IsAbs(name) || strings.ContainsAny(name, "\n\x00") {
		return Absent, ""
	}
	if t.Touches(name) {
		return Unknown, ""
	}
	dir, base := path.Split(name)
	entries, known := f.List(t, strings.TrimSuffix(dir, "/"))
	if !known {
		return Unknown, ""
	}
	e, ok := entries[base]
	switch {
	case !ok && f.behindLink(t, name):
		return Unknown, ""
	case !ok:
		return Absent, ""
	case e.Link: // what is there, and whether it is a directory, is said elsewhere
		return Unknown, ""
	case e.Dir:
		return IsDir, ""
	}
	return IsFile, e.ID
}

// behindLink says whether a directory above a path is a link, as far as is known by now.
func (f *Files) behindLink(t Tree, name string) bool {
	for name = path.Dir(name); name != "."; name = path.Dir(name) {
		dir, base := path.Split(name)
		if entries, known := f.List(t, strings.TrimSuffix(dir, "/")); !known || entries[base].Link {
			return true
		}
	}
	return false
}

// Touches reports whether the patch of a tree may change what is at a path.
func (t Tree) Touches(name string) bool {
	for rest := t.Patched; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, "\n")
		if one == name || strings.HasPrefix(name, one+"/") {
			return true
		}
	}
	return false
}

// List returns the entries of a directory of a tree, without the patch; false if they are not known.
func (f *Files) List(t Tree, dir string) (map[string]Entry, bool) {
	if f.lost(t.Rev) != "" {
		return nil, false
	}
	at := Place{t.Repo, t.Rev, dir}
	entries, known := f.dirs[at]
	if !known {
		f.wantDirs[at] = true
	}
	return entries, known
}

// Read returns the content of a file; false if it is not known.
func (f *Files) Read(t Tree, name string) (content []byte, id string, ok bool) {
	s, id := f.Stat(t, name)
	if s != IsFile {
		return nil, "", false
	}
	content, known := f.blobs[id]
	if !known {
		if f.wantBlobs[t.Repo] == nil {
			f.wantBlobs[t.Repo] = map[string]bool{}
		}
		f.wantBlobs[t.Repo][id] = true
		return nil, id, false
	}
	return content, id, content != nil
}

// Load reads everything that the last round asked for in vain, and reports whether there was anything. After an error,
// nothing more is read.
func (f *Files) Load(ctx context.Context) (more bool, err error) {
	if f.broken != "" || len(f.wantDirs) == 0 && len(f.wantBlobs) == 0 {
		return false, nil
	}
	defer func() {
		if err != nil {
			f.broken = err.Error()
		}
	}()
	at := slices.Collect(maps.Keys(f.wantDirs))
	listed, err := f.r.Dirs(ctx, at)
	if err != nil {
		return false, err
	}
	for _, p := range at {
		var entries map[string]Entry
		if list, ok := listed[p]; ok {
			entries = make(map[string]Entry, len(list))
			for _, e := range list {
				entries[e.Name] = e
			}
		}
		f.dirs[p] = entries
	}
	for repo, ids := range f.wantBlobs {
		list := slices.Collect(maps.Keys(ids))
		contents, err := f.r.Files(ctx, repo, list)
		if err != nil {
			return false, err
		}
		for _, id := range list {
			f.blobs[id] = contents[id]
		}
	}
	f.wantDirs, f.wantBlobs = map[Place]bool{}, map[string]map[string]bool{}
	return true, nil
}
