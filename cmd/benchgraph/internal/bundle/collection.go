package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Collection is a bundle in the making.
type Collection struct {
	Document Document
	Files    []File
	Lost     int // logs that no longer exist

	names map[string]bool
}

// Project is a project as it was read.
type Project struct {
	Dir     string
	Spec    *hclspec.Spec
	Options hclspec.Options // with the given values of variables
	Lock    []byte          // the lock file
	History []byte          // the answers from the histories of repos that were used
}

// path returns the path of a file of the project.
func (p *Project) path(name string) string { return filepath.Join(p.Dir, filepath.FromSlash(name)) }

// NewCollection returns a collection without files.
func NewCollection(d Document) *Collection { return &Collection{Document: d, names: map[string]bool{}} }

// Add adds a file, unless there is one of that name.
func (c *Collection) Add(f File) {
	if !c.names[f.Name] {
		c.names[f.Name] = true
		c.Files = append(c.Files, f)
	}
}

// AddProject adds the values of variables, the files that were read, the patches, the lock and the answers from the
// histories of repos. Of files that only need to exist, it adds the names.
func (c *Collection) AddProject(p Project) error {
	if err := c.addGiven(p); err != nil {
		return err
	}
	spec := p.Spec
	for _, name := range slices.Sorted(maps.Keys(spec.Reads.Content)) {
		if err := c.addFile(ProjectPart+name, p.path(name)); err != nil {
			return err
		}
	}
	for i := range spec.Sources {
		if patch := spec.Sources[i].Patch; patch != "" {
			if err := c.addFile(ProjectPart+patch, p.path(patch)); err != nil {
				return err
			}
		}
	}
	c.Add(Text(ProjectPart+LockFile, p.Lock))
	if len(p.History) > 0 {
		c.Add(Text(historyFile, p.History))
	}
	seen := map[string]bool{}
	for _, names := range []map[string]bool{spec.Reads.Regular, spec.Reads.Matched} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			info, err := os.Stat(p.path(name))
			switch {
			case err != nil, c.names[ProjectPart+name], seen[name], !Fits(name):
			case info.IsDir():
				c.Document.Folders = append(c.Document.Folders, name)
			default:
				c.Document.Present = append(c.Document.Present, name)
			}
			seen[name] = true
		}
	}
	return nil
}

// addGiven adds the values of variables. It adds variables of the environment only if their names stand in the files.
func (c *Collection) addGiven(p Project) error {
	c.Document.Vars = p.Options.Vars
	for _, name := range slices.Sorted(maps.Keys(p.Options.EnvVars)) {
		for _, file := range p.Spec.Files {
			text, err := os.ReadFile(p.path(file))
			if err != nil {
				return err
			}
			if regexp.MustCompile(`\bvariable\b[\s":{]*` + regexp.QuoteMeta(name) + `\b|"` + regexp.QuoteMeta(name) +
				`"`).Match(text) {
				if c.Document.EnvVars == nil {
					c.Document.EnvVars = map[string]string{}
				}
				c.Document.EnvVars[name] = p.Options.EnvVars[name]
			}
		}
	}
	for i, name := range p.Options.VarFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		ext := ".hcl"
		if strings.HasSuffix(name, ".json") {
			ext = ".json"
		}
		inside := strconv.Itoa(i+1) + ext
		c.Document.VarFiles = append(c.Document.VarFiles, inside)
		c.Add(Text(givenPart+inside, text))
	}
	return nil
}

// addFile adds a regular file of this machine.
func (c *Collection) addFile(name, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", from)
	}
	c.Add(File{Name: name, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(from) }})
	return nil
}

// AddResults adds the files of blocks and of the nodes that gather from blocks, from the store.
func (c *Collection) AddResults(ctx context.Context, store cache.Store) error {
	for _, n := range c.Document.All() {
		if n.Result == nil || n.Result.Files == nil {
			continue
		}
		entry, err := store.Get(ctx, n.Result.Key, true)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Address, err)
		}
		for _, f := range n.Result.Files {
			if name, within := resultFile(n.Result.Key, f.Path), Fits(f.Path); within {
				if err := c.addResult(name, entry, f); err != nil {
					return fmt.Errorf("%s: %w", n.Address, err)
				}
			}
		}
	}
	return nil
}

// addResult adds one file of a result. For a link it adds the file that the link leads to, since a bundle has no links.
func (c *Collection) addResult(name string, entry cache.Entry, f cache.File) error {
	from := filepath.Join(entry.Dir, filepath.FromSlash(f.Path))
	if f.Link == "" {
		return c.addFile(name, from)
	}
	target, err := os.OpenInRoot(entry.Dir, filepath.FromSlash(f.Path))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := target.Stat()
	if err = errors.Join(err, target.Close()); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return c.addFile(name, from)
}

// AddLogs adds the logs of blocks and of failed attempts, and counts the lost ones. logOf returns the path of a log.
func (c *Collection) AddLogs(found []findings.Findings, logOf func(attempt string) string) error {
	var attempts []string
	for _, n := range c.Document.All() {
		if r := n.Result; r != nil && r.Files != nil && n.Kind == "trial" {
			attempts = append(attempts, r.Log)
		}
	}
	for _, f := range found {
		for _, failed := range f.Failures {
			attempts = append(attempts, failed.Attempt)
		}
	}
	slices.Sort(attempts)
	for _, attempt := range slices.Compact(attempts) {
		if name := logsPart + attempt + ".log"; attempt != "" && Fits(name) {
			err := c.addFile(name, logOf(attempt))
			if errors.Is(err, os.ErrNotExist) {
				c.Lost++
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// maxSearched bounds the bytes at the beginning of a file that are searched for passwords.
const maxSearched = 64 << 20

// Guarded returns the files of the bundle. Opening one returns an error if the file holds a secret.
func (c *Collection) Guarded(secrets workdir.Secrets) []File {
	guarded := slices.Clone(c.Files)
	for i, f := range guarded {
		guarded[i].Open = func() (io.ReadCloser, error) {
			if err := search(f, secrets); err != nil {
				return nil, err
			}
			return f.Open()
		}
	}
	return guarded
}

// search returns an error if the file holds a secret.
func search(f File, secrets workdir.Secrets) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	found, err := secrets.Find(r)
	if err != nil {
		return err
	}
	if found != nil {
		return cli.Hint("Keep it out of the file and of what commands print, or unset it if it is none.",
			"it holds the value of the secret %s", found.Name)
	}
	if !strings.HasPrefix(f.Name, ProjectPart) {
		return nil
	}
	again, err := f.Open()
	if err != nil {
		return err
	}
	defer again.Close()
	text, err := io.ReadAll(io.LimitReader(again, maxSearched))
	if at, _, found := printable.Password(text); err == nil && found {
		line := 1 + bytes.Count(text[:at], []byte("\n"))
		err = cli.Hint("Let git or the registry ask for it, or take it from a secret.",
			"line %d holds an address with a password", line)
	}
	return err
}
