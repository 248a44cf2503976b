package remote

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Directories of a snapshot.
const (
	projectPart  = "project"   // files of the project's directory
	statePart    = "state"     // answers that the worker need not find anew
	varFilesPart = "var_files" // by their number
)

// answersOf are the parts of a project's state that a snapshot has. None of them holds a secret.
var answersOf = [...]string{"history", "preflight", "answers"}

// Drafts is the store of a machine in which snapshots are made.
type Drafts interface {
	Scratch() (string, error)
	Put(ctx context.Context, draft cache.Draft) (cache.Entry, error)
	Send(ctx context.Context, e cache.Entry) error
}

// Source says of which files a snapshot is made: those that were read or hashed so far and are below the directory of
// the project.
type Source struct {
	Project
	Spec *hclspec.Spec
	Lock *hclspec.Lock
	Stat *cache.StatCache
}

// lockName is the name of the lock file of a project.
const lockName = "benchgraph.lock.hcl"

// names returns the files that were read or hashed, absolute or below the directory of the project.
func (s *Source) names() (names []string) {
	names = slices.Collect(maps.Keys(s.Spec.Reads.Content))
	for _, more := range []map[string]bool{s.Spec.Reads.Regular, s.Spec.Reads.Matched} {
		names = slices.AppendSeq(names, maps.Keys(more))
	}
	for i := range s.Spec.Sources {
		if patch := s.Spec.Sources[i].Patch; patch != "" {
			names = append(names, patch)
		}
	}
	s.Stat.Asked.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	return names
}

// Snapshot puts what an evaluation of the project reads into the shared store, unless it is there. The key is made of
// the names, modes and bytes of the files.
func (s *Source) Snapshot(ctx context.Context, store Drafts) (key cache.Key, err error) {
	files := map[string]string{} // paths by their names in the snapshot
	for _, name := range s.names() {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.Dir, filepath.FromSlash(name))
		}
		rel, err := filepath.Rel(s.Dir, name)
		within, err2 := filepath.Rel(s.State, name)
		if err == nil && filepath.IsLocal(rel) && (err2 != nil || !filepath.IsLocal(within)) && rel != lockName {
			files[filepath.Join(projectPart, rel)] = name
		}
	}
	for i, name := range s.VarFiles {
		files[varFile(i, name)] = name
	}
	for _, part := range answersOf {
		err := filepath.WalkDir(filepath.Join(s.State, part), func(name string, e iofs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				rel, _ := filepath.Rel(s.State, name) // it is below
				files[filepath.Join(statePart, rel)] = name
			}
			return err
		})
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return key, err
		}
	}
	scratch, err := store.Scratch()
	if err != nil {
		return key, err
	}
	out := filepath.Join(scratch, cache.FilesDir)
	draft := cache.Draft{Dir: scratch, Meta: cache.Meta{Address: "snapshot"}}
	if draft.Text, err = s.lay(ctx, out, files); err != nil {
		return key, err
	}
	draft.Key = cache.KeyOf(draft.Text)
	e, err := store.Put(ctx, draft)
	if err == nil {
		err = store.Send(ctx, e)
	}
	return e.Key, err
}

// lay copies the files into a directory and returns the description of the copies.
func (s *Source) lay(ctx context.Context, out string, files map[string]string) (string, error) {
	if err := os.MkdirAll(filepath.Join(out, projectPart), 0o755); err != nil {
		return "", err
	}
	for name, from := range files {
		err := workdir.CopyFile(filepath.Join(out, name), from)
		if err != nil && !errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, workdir.ErrIrregular) {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(out, projectPart, lockName), s.Lock.Bytes(), 0o644); err != nil {
		return "", err
	}
	d := cache.Describe("snapshot")
	stat := cache.OpenStatCache("") // of this snapshot alone
	err := filepath.WalkDir(out, func(name string, e iofs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		h, err := stat.Hash(ctx, name)
		rel, _ := filepath.Rel(out, name) // it is below
		d.Add("file", filepath.ToSlash(rel), fmt.Sprintf("%o", h.Mode), h.SHA256)
		return err
	})
	return d.Text(), err
}

// varFile is the name of a variable file in a snapshot. The end of a name says how the file is read.
func varFile(i int, name string) string {
	end := ".hcl"
	if strings.HasSuffix(name, ".json") {
		end = ".json"
	}
	return filepath.Join(varFilesPart, fmt.Sprint(i)+end)
}

// StoreDir returns the directory of the store of this machine, which may be given.
func StoreDir(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	own := filepath.Join(os.TempDir(), fmt.Sprintf("benchgraph-store-%d", os.Getuid()))
	if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, iofs.ErrExist) {
		return "", err
	}
	return own, nil
}

// Bring takes the snapshot of a request from the shared store into a store of this machine, and unpacks it below dir.
// It returns the directories of project and state and the variable files. share puts the shared store behind the other.
func (r *Request) Bring(ctx context.Context, store, dir string, share func(*shared.Store) error) (
	project, state string, varFiles []string, err error) {
	disk, err := cache.OpenDisk(store)
	if err != nil {
		return "", "", nil, err
	}
	s := shared.New(disk)
	defer s.Close()
	if err = share(s); err == nil {
		_, err = s.Ask(ctx, r.Files)
	}
	var e cache.Entry
	if err == nil {
		e, err = disk.Get(ctx, r.Files, true) // a file may have been changed on this machine
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("snapshot of the project: %w", err)
	}
	return r.unpack(e, filepath.Join(dir, "work"))
}

// unpack copies a snapshot into a directory of the worker, and returns the directories of project and state and the
// variable files. The store has checked the names and bytes of the entry.
func (p *Project) unpack(e cache.Entry, dir string) (project, state string, varFiles []string, err error) {
	for i := range e.Files {
		if f := &e.Files[i]; f.Link != "" {
			return "", "", nil, fmt.Errorf("snapshot %s: %s is a link", e.Key.Short(), f.Path)
		}
	}
	if err := workdir.CopyTree(dir, e.Dir); err != nil {
		return "", "", nil, err
	}
	for i, name := range p.VarFiles {
		varFiles = append(varFiles, filepath.Join(dir, varFile(i, name)))
	}
	state = filepath.Join(dir, statePart)
	return filepath.Join(dir, projectPart), state, varFiles, os.MkdirAll(state, 0o700)
}
