// Package snapshot takes a project to another machine: the files that its evaluation reads, the lock, and the facts
// that were found beside them. From these, a worker draws the same graph without resolving names or asking anybody.
package snapshot

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container/dockerfile"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/tasks"
)

// Found has the facts of a project beside its files and its lock.
type Found struct {
	Unresolved map[string]tasks.UnknownImage `json:"unresolved"`
	Refused    tasks.Refusals                `json:"refused"`
	// files that tasks read, by name
	Files map[string]File `json:"files"`
	// by word of a command: whether the project has a file of that name
	Words    map[string]bool  `json:"words"`
	FixFiles []string         `json:"fix_files"` // sorted
	Builds   map[string]Build `json:"builds"`    // by tasks.BuildID
}

// File is a file of the project as it was when it was read.
type File struct {
	SHA256 string `json:"sha256"`
	Mode   uint32 `json:"mode"`
	Size   int64  `json:"size"` // bytes
}

// Build is the context of an image build.
type Build struct {
	Bases []string                 `json:"bases"`
	Base  string                   `json:"base,omitempty"`
	Dir   string                   `json:"dir"` // below the project's directory
	Files []dockerfile.ContextFile `json:"files"`
}

// foundIn returns the facts that a snapshot keeps. Other facts are read again from the files or the lock.
func foundIn(f *tasks.Facts) (*Found, error) {
	found := &Found{Unresolved: f.Unresolved, Refused: f.Refused, Words: f.Seen.Words,
		FixFiles: slices.Sorted(maps.Keys(f.Seen.FixFiles)), Files: map[string]File{}, Builds: map[string]Build{}}
	for name, file := range f.Seen.Known {
		found.Files[name] = File{file.SHA256, file.Mode, file.Stamp.Size}
	}
	for id, b := range f.Seen.Builds {
		dir, err := filepath.Rel(f.Spec.Dir, b.Dir)
		if err != nil {
			return nil, err
		}
		files := slices.Clone(b.Files)
		for i := range files { // the only permission that a build gets is that to execute
			if m := files[i].Mode; m.IsRegular() {
				files[i].Mode = 0o644 | m&0o111
			} else {
				files[i].Mode = m & fs.ModeType
			}
		}
		found.Builds[id] = Build{b.Bases, b.Base, filepath.ToSlash(dir), files}
	}
	return found, nil
}

// Give puts the facts into those of a copy of the project. The files of the copy must be evaluated.
func (f *Found) Give(to *tasks.Facts) {
	to.Unresolved, to.Refused = f.Unresolved, f.Refused
	for name, file := range f.Files {
		to.Seen.Known[name] = tasks.File{Path: name, Hashed: cache.Hashed{SHA256: file.SHA256, Mode: file.Mode,
			Stamp: cache.Stamp{Size: file.Size}}}
	}
	maps.Copy(to.Seen.Words, f.Words)
	for _, name := range f.FixFiles {
		to.Seen.FixFiles[name] = true
	}
	for id, b := range f.Builds {
		to.Seen.Builds[id] = image.Context{Bases: b.Bases, Base: b.Base, Files: b.Files,
			Dir: filepath.Join(to.Spec.Dir, filepath.FromSlash(b.Dir))}
	}
}
