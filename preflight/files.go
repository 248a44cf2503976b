package preflight

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
)

// files caches the files of revisions. A missing one is noted and read for the next round, with all others that this
// round missed.
type files struct {
	r         Reader
	dirs      map[Place]map[string]Entry // nil: there is no such directory
	blobs     map[string][]byte          // by ID
	wantDirs  map[Place]bool
	wantBlobs map[string]map[string]bool // IDs by repo
	modules   map[string]*module         // Python files that were scanned, by ID
	lost      map[string]Refusal         // by revision: why nothing of it can be read
	broken    string                     // why nothing more can be read; empty: it can
}

func newFiles(r Reader, lost map[string]Refusal) *files {
	return &files{r: r, lost: lost, dirs: map[Place]map[string]Entry{}, blobs: map[string][]byte{},
		modules: map[string]*module{}, wantDirs: map[Place]bool{}, wantBlobs: map[string]map[string]bool{}}
}

// state is what is known of a path.
type state int

const (
	unknown state = iota // not read yet, cannot be read, or changed by a patch
	absent
	isFile
	isDir
)

// unreadable says why a tree cannot be read; empty: it can.
func (f *files) unreadable(t Tree) string { return cmp.Or(f.lost[t.Rev].Why, f.broken) }

// stat finds out what is at a path of a tree. The ID is that of a file.
func (f *files) stat(t Tree, name string) (state, string) {
	if t.IsZero() {
		return unknown, ""
	}
	name = path.Clean(name)
	if name == "." {
		return isDir, ""
	}
	if strings.HasPrefix(name, "../") || name == ".." || path.IsAbs(name) || strings.ContainsAny(name, "\n\x00") {
		return absent, ""
	}
	if t.touches(name) {
		return unknown, ""
	}
	dir, base := path.Split(name)
	entries, known := f.list(t, strings.TrimSuffix(dir, "/"))
	if !known {
		return unknown, ""
	}
	e, ok := entries[base]
	switch {
	case !ok:
		return absent, ""
	case e.Dir:
		return isDir, ""
	}
	return isFile, e.ID
}

// touches reports whether the patch of a tree may change what is at a path.
func (t Tree) touches(name string) bool {
	for rest := t.Patched; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, "\n")
		if one == name || strings.HasPrefix(name, one+"/") {
			return true
		}
	}
	return false
}

// list is what a directory of a tree holds, without the patch; false when it is not known.
func (f *files) list(t Tree, dir string) (map[string]Entry, bool) {
	if f.lost[t.Rev].Why != "" {
		return nil, false
	}
	at := Place{t.Repo, t.Rev, dir}
	entries, known := f.dirs[at]
	if !known {
		f.wantDirs[at] = true
	}
	return entries, known
}

// read is the content of a file; false when it is not known.
func (f *files) read(t Tree, name string) (content []byte, id string, ok bool) {
	s, id := f.stat(t, name)
	if s != isFile {
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

// module is a Python file, scanned; nil when there is none or it is not known.
func (f *files) module(t Tree, name string) *module {
	content, id, ok := f.read(t, name)
	if !ok {
		return nil
	}
	m := f.modules[id]
	if m == nil {
		m = scan(string(content))
		f.modules[id] = m
	}
	return m
}

// load reads all that the last round missed. It returns whether there was anything.
func (f *files) load(ctx context.Context) (bool, error) {
	if f.broken != "" || len(f.wantDirs) == 0 && len(f.wantBlobs) == 0 {
		return false, nil
	}
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
