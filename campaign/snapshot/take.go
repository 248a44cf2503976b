package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/image/left"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/workdir"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/tasks"
)

// Names in a snapshot.
const (
	documentFile = "snapshot.json"
	historyFile  = "history"  // answers about the histories of repos
	patchFile    = "try.diff" // patch of a candidate that the file does not declare
	projectPart  = "project/" // files of the project's directory
	lockFile     = "benchgraph.lock.hcl"
)

// Address is the address in the entries of snapshots, which belong to no node.
const Address = "snapshot"

// document has the data of a snapshot beside its files.
type document struct {
	Present []string `json:"present"` // files that only need to exist
	Folders []string `json:"folders"` // directories that only need to exist
	Found   *Found   `json:"found"`
}

// Source takes snapshots of one project. It is safe for concurrent use.
type Source struct {
	History *history.Cache // answers the files' questions about histories of repos
	one     sync.Mutex     // held while a snapshot is taken
}

// taking is a snapshot in the making.
type taking struct {
	*tasks.Drawing
	files map[string]wanted // by name in the snapshot
	texts map[string][]byte // contents that are not copies of files, by name in the snapshot
	doc   document
}

// wanted is a file of the project that goes into a snapshot.
type wanted struct {
	from   string // absolute
	sha256 string // the digest that it must have
	exec   bool
}

// Take returns the data from which a worker draws the graph again: the choice, and a snapshot of the present project,
// which is an entry of the machine's store. The key of the entry is made of the names, modes and bytes of the files, so
// an unchanged project is copied once.
func (s *Source) Take(ctx context.Context, d *tasks.Drawing) (remote.Drawn, error) {
	s.one.Lock()
	defer s.one.Unlock()
	choice, err := json.Marshal(d.Choice)
	if err != nil {
		return remote.Drawn{}, err
	}
	t := &taking{Drawing: d, files: map[string]wanted{}, texts: map[string][]byte{}}
	if err := t.gather(s.History); err != nil {
		return remote.Drawn{}, err
	}
	text := t.describe()
	key := cache.KeyOf(text)
	e, err := d.Store.Get(ctx, key, false)
	if err != nil {
		e, err = t.put(ctx, key, text)
	}
	return remote.Drawn{Choice: choice, Snapshot: e}, err
}

// gather collects the files and texts of the snapshot.
func (t *taking) gather(past *history.Cache) error {
	spec := t.Spec
	for name, sum := range spec.Reads.Content {
		t.add(name, hex.EncodeToString(sum[:]), false)
	}
	for name, sum := range t.Seen.Patches {
		if filepath.IsAbs(name) { // of a candidate beside the file; other patches are files of the project
			t.files[patchFile] = wanted{name, sum, false}
		} else {
			t.add(name, sum, false)
		}
	}
	for i := range spec.Fixes {
		for _, c := range spec.Fixes[i].Cases {
			for _, f := range c.Files {
				if known, ok := t.Seen.Known[fix.Source(f)]; ok {
					t.addKnown(known)
				}
			}
		}
	}
	for _, n := range t.Jobs {
		for _, f := range tasks.FilesOf(n) {
			if f.Stamp.Size <= tasks.MaxSent { // the node has larger files itself
				t.addKnown(f)
			}
		}
		if err := t.addImages(n); err != nil {
			return err
		}
	}
	t.addNames()
	var err error
	if t.doc.Found, err = foundIn(t.Facts); err != nil {
		return err
	}
	t.texts[projectPart+lockFile] = t.Lock.Bytes()
	if t.texts[historyFile], err = past.Used(); err != nil {
		return err
	}
	t.texts[documentFile], err = json.MarshalIndent(t.doc, "", " ")
	return err
}

// add adds a file of the project.
func (t *taking) add(name, sum string, exec bool) {
	t.files[projectPart+path.Clean(name)] = wanted{t.Spec.Path(name), sum, exec}
}

func (t *taking) addKnown(f tasks.File) { t.add(f.Path, f.SHA256, cache.Executable(f.Mode)) }

// addImages adds the build contexts of the images that a node needs, since a worker makes these images anew.
func (t *taking) addImages(n *engine.Node) error {
	for _, dep := range n.Needs {
		m, ok := dep.Task.(*image.Task)
		if l, isLeft := dep.Task.(left.Task); isLeft {
			m, ok = l.Of.(*image.Task)
		}
		if !ok {
			continue
		}
		dir, err := filepath.Rel(t.Spec.Dir, m.Context.Dir)
		if err != nil && m.Spec.Build != nil {
			return err
		}
		for _, f := range m.Context.Files {
			if f.Size > tasks.MaxSent {
				return tooLarge(dep.Address, f.Path)
			}
			if f.Mode.IsRegular() {
				t.add(path.Join(filepath.ToSlash(dir), f.Path), f.SHA256, f.Mode&0o111 != 0)
			}
		}
		if err := t.addImages(dep); err != nil {
			return err
		}
	}
	return nil
}

func tooLarge(address, file string) error {
	return refuse("leave the file out with .dockerignore; or push the image, and begin with that (from)",
		"%s is built on the node, and %s in its build context has more than 64 MiB, which are not sent", address, file)
}

// Check returns why the jobs of a plan cannot be made, with a remedy; nil if they can.
func Check(ctx context.Context, d *tasks.Drawing, p *engine.Plan) *failure.Failure {
	for _, x := range d.Config.Executors() {
		if f := x.Check(ctx, p); f != nil {
			return f
		}
	}
	t := &taking{Drawing: d, files: map[string]wanted{}}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action == engine.Run && s.Node.Remote != nil {
			if refused, ok := errors.AsType[*engine.Failure](t.addImages(s.Node)); ok {
				return &refused.Failure
			}
		}
	}
	return nil
}

// addNames adds the names that the evaluation only looked for, and did not read.
func (t *taking) addNames() {
	names := maps.Clone(t.Spec.Reads.Regular)
	maps.Copy(names, t.Spec.Reads.Matched)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, read := t.files[projectPart+name]; read || name == lockFile || !filepath.IsLocal(name) {
			continue
		}
		info, err := os.Stat(filepath.Join(t.Spec.Dir, filepath.FromSlash(name)))
		switch {
		case err != nil:
		case info.IsDir():
			t.doc.Folders = append(t.doc.Folders, name)
		default:
			t.doc.Present = append(t.doc.Present, name)
		}
	}
}

// describe returns the description of the snapshot, from which the key is made.
func (t *taking) describe() string {
	d := cache.Describe(Address)
	all := map[string]line{}
	for name, f := range t.files {
		all[name] = line{f.sha256, f.exec}
	}
	for name, text := range t.texts {
		sum := sha256.Sum256(text)
		all[name] = line{hex.EncodeToString(sum[:]), false}
	}
	write(d, all)
	return d.Text()
}

// line has the values of a file's line in the description.
type line struct {
	sha256 string
	exec   bool
}

func write(d *cache.Description, all map[string]line) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d.Add("file", name, all[name].sha256, strconv.FormatBool(all[name].exec))
	}
}

// put copies the files into an entry of the store. A file that has changed since it was read is an error, since the
// graph was made from the old one.
func (t *taking) put(ctx context.Context, key cache.Key, text string) (e cache.Entry, err error) {
	scratch, err := t.Store.Scratch()
	if err != nil {
		return e, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, fs.RemoveTree(scratch))
		}
	}()
	out, secrets := filepath.Join(scratch, cache.FilesDir), secretsOf(t.Facts)
	if err := os.MkdirAll(filepath.Join(out, projectPart), 0o755); err != nil {
		return e, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if err := t.files[name].copyTo(filepath.Join(out, filepath.FromSlash(name)), secrets); err != nil {
			return e, err
		}
		if ctx.Err() != nil {
			return e, context.Cause(ctx)
		}
	}
	for name, content := range t.texts {
		if err := clean(name, bytes.NewReader(content), secrets); err != nil {
			return e, err
		}
		if err := os.WriteFile(filepath.Join(out, filepath.FromSlash(name)), content, 0o644); err != nil {
			return e, err
		}
	}
	return t.Store.Put(ctx, cache.Draft{Dir: scratch, Meta: cache.Meta{Key: key, Text: text, Address: Address}})
}

// secretsOf returns the secrets of the file whose values are known here.
func secretsOf(f *tasks.Facts) (all workdir.Secrets) {
	for _, name := range f.Spec.Secrets() {
		if value, ok := f.Secret(name); ok {
			all = append(all, workdir.Secret{Name: name, Value: value})
		}
	}
	return all
}

// copyTo copies the file, unless it holds a secret or has changed.
func (w wanted) copyTo(to string, secrets workdir.Secrets) error {
	h := sha256.New()
	err := fs.CopyTo(to, w.from, h)
	if errors.Is(err, fs.ErrIrregular) || errors.Is(err, iofs.ErrNotExist) ||
		err == nil && hex.EncodeToString(h.Sum(nil)) != w.sha256 {
		return refuse("apply again", "%s was changed since it was read", w.from)
	}
	mode := os.FileMode(0o644)
	if w.exec {
		mode = 0o755
	}
	if err == nil {
		err = os.Chmod(to, mode)
	}
	if err != nil {
		return err
	}
	f, err := os.Open(to)
	if err != nil {
		return err
	}
	defer f.Close()
	return clean(w.from, f, secrets)
}

// clean returns an error if text holds a secret: everyone who shares the store could read it.
func clean(name string, text io.Reader, secrets workdir.Secrets) error {
	found, err := secrets.Find(text)
	if err == nil && found != nil {
		return refuse("keep it out of the files of the project, or unset it if it is none",
			"%s holds the value of the secret %s, and would be put into the shared store", name, found.Name)
	}
	return err
}

// refuse returns the failure of a node that cannot become a job until somebody changes something.
func refuse(remedy, format string, args ...any) error {
	return &engine.Failure{Retry: &engine.Retry{Attempts: 1}, Failure: failure.Failure{Class: failure.Infra,
		Rule: "snapshot", Stage: "submit", Message: "a job cannot be made: " + fmt.Sprintf(format, args...),
		Remedy: remedy}}
}
