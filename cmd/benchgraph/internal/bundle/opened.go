package bundle

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/packs"
	"github.com/benchgraph/benchgraph/source/history"
)

// Opened is a bundle in a temporary directory.
type Opened struct {
	*Contents
	Document Document // empty before ReadDocument
	Reasons  []string // the differences between the bundle and its own statements

	dir string
}

// Open unpacks a bundle of at most maxBytes. The caller must close the result.
func Open(path string, maxBytes int64) (*Opened, error) {
	dir, err := os.MkdirTemp("", "benchgraph-open-")
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	o := &Opened{dir: dir}
	if err := o.unpack(path, maxBytes); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Close removes the directory.
func (o *Opened) Close() { _ = os.RemoveAll(o.dir) } // it holds only files

// Project returns the directory of the project.
func (o *Opened) Project() string { return filepath.Join(o.dir, ProjectPart) }

// Result returns the directory of a node's result; "" if the bundle does not have it.
func (o *Opened) Result(n *results.KnownNode) string {
	dir := filepath.Join(o.dir, resultsPart, n.Result.Key.String())
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

func (o *Opened) unpack(path string, maxBytes int64) error {
	const remedy = "Make one with benchgraph report -bundle=FILE."
	f, err := os.Open(path)
	if err != nil {
		return cli.Hint(remedy, "bundle %s: %w", path, fs.Cause(err))
	}
	defer f.Close()
	o.Contents, err = Unpack(f, o.dir, maxBytes)
	if large := (*TooLargeError)(nil); errors.As(err, &large) {
		return cli.Hint("If you trust whoever made it, open it with a larger -max-size.", "bundle %s: %w", path, err)
	}
	if err != nil {
		return cli.Hint(remedy, "bundle %s: %w", path, err)
	}
	o.Reasons = o.Contents.Differences
	return nil
}

// maxDocument bounds the size of a bundle.json that is read, in bytes.
const maxDocument = 512 << 20

// ReadDocument reads the data of the bundle, and adds differences between the data and the files to Reasons.
func (o *Opened) ReadDocument() error {
	text, err := o.Read(DocumentFile, maxDocument)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &o.Document); err != nil {
		return fmt.Errorf("%s: %w", DocumentFile, err)
	}
	if major, _, _ := strings.Cut(o.Document.Format, "."); major != "1" {
		return cli.Hint("Open it with a newer benchgraph.", "its format is %.40q, and this benchgraph reads 1.x",
			o.Document.Format)
	}
	o.check()
	return nil
}

// Read returns the content of a file of the bundle, which may have at most that many bytes.
func (o *Opened) Read(name string, most int64) ([]byte, error) {
	f, err := os.OpenInRoot(o.dir, name)
	if err != nil {
		return nil, fmt.Errorf("%.80s: %w", name, fs.Cause(err))
	}
	defer f.Close()
	text, err := fs.ReadAll(f, most)
	if err != nil {
		err = fmt.Errorf("%.80s: %w", name, fs.Cause(err))
	}
	return text, err
}

// check compares keys with the texts that they are digests of, and files of results with the digests of the store that
// they came from.
func (o *Opened) check() {
	if err := o.Document.Lost(); err != nil {
		o.Reasons = append(o.Reasons, err.Error())
	}
	for _, n := range o.Document.All() {
		if n.Text != "" && cache.Key(sha256.Sum256([]byte(n.Text))) != n.Key {
			o.Reasons = append(o.Reasons, fmt.Sprintf("the key of %s is not that of its text", n.Address))
		}
		r := n.Result
		if r == nil || r.Files == nil {
			continue
		}
		if !r.Lists() {
			o.Reasons = append(o.Reasons, fmt.Sprintf("the digest of the result of %s is not that of its files",
				n.Address))
		}
		for _, f := range r.Files {
			if f.Link == "" && Fits(f.Path) && o.Files[resultFile(r.Key, f.Path)] != f.SHA256 {
				o.Reasons = append(o.Reasons, fmt.Sprintf("%q of %s is not the file that was stored", f.Path,
					n.Address))
			}
		}
	}
}

// Options returns the options to read the project as its benchgraph read it.
func (o *Opened) Options(lock *lockfile.Lock) (hclspec.Options, error) {
	root, err := os.OpenRoot(o.Project())
	if err != nil {
		return hclspec.Options{}, fmt.Errorf("%s: %w", ProjectPart, fs.Cause(err))
	}
	defer root.Close()
	for i, name := range slices.Concat(o.Document.Folders, o.Document.Present) {
		if !Fits(name) {
			return hclspec.Options{}, fmt.Errorf("%s: %.80q is no name of a file", DocumentFile, name)
		}
		dir := filepath.Dir(name)
		if i < len(o.Document.Folders) {
			dir = name
		}
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return hclspec.Options{}, err
		}
		if i >= len(o.Document.Folders) {
			f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				return hclspec.Options{}, err
			}
		}
	}
	d := &o.Document
	options := hclspec.Options{Dir: o.Project(), File: d.File, Vars: d.Vars, EnvVars: d.EnvVars, Lock: lock,
		Packs: packs.FS, History: history.Open(filepath.Join(o.dir, historyFile))}
	for _, name := range d.VarFiles {
		if !Fits(name) || o.Files[givenPart+name] == "" {
			return options, fmt.Errorf("%s: there is no file of variables %.80q", DocumentFile, name)
		}
		options.VarFiles = append(options.VarFiles, filepath.Join(o.dir, givenPart, name))
	}
	return options, nil
}
