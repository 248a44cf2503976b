package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/bundle"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// The names in a bundle: see docs/bundle.md.
const (
	knownFile   = "bundle.json"
	reportFile  = "report.json" // of all reports together, as report -json prints it
	historyFile = "history"
	projectPart = "project/"
	resultsPart = "results/"
	reportsPart = "reports/"
	logsPart    = "logs/"
	givenPart   = "given/" // files of variables
	lockName    = "benchgraph.lock.hcl"
)

// bundleDoc has the data of a bundle beside its files.
type bundleDoc struct {
	Format     string            `json:"format"`
	Benchgraph string            `json:"benchgraph"` // version
	Revision   string            `json:"revision"`   // bundle.Build of that benchgraph; empty: unknown
	File       string            `json:"file"`       // root file below project
	Vars       map[string]string `json:"vars,omitempty"`
	EnvVars    map[string]string `json:"env_vars,omitempty"`
	VarFiles   []string          `json:"var_files,omitempty"` // below given, in their order
	// files and directories of the project that only need to exist
	Present []string `json:"present,omitempty"`
	Folders []string `json:"directories,omitempty"`
	Logs    string   `json:"logs"`    // directory of the logs in reports
	Reports []string `json:"reports"` // names: of the file's reports, or of one report of all compares
	results.Known
}

// bundling is a bundle in the making.
type bundling struct {
	*session
	doc   bundleDoc
	files []bundle.File
	names map[string]bool
	lost  int // logs that no longer exist
}

// bundle writes the reports and the results that they rest on into one file. The file gets its name only after it could
// be opened and judged.
func (s *session) bundle(ctx context.Context, to string, known *results.Known, found []findings.Findings,
	reports []hclspec.Report) error {
	b := &bundling{session: s, names: map[string]bool{}}
	predicate, err := b.gather(ctx, known, found, reports)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	const remedy = "Write it to a file of a directory that is there: -bundle=FILE."
	f, err := fs.Begin(to)
	if err != nil {
		return hint(remedy, "bundle %s: %w", to, causeOf(err))
	}
	defer f.Drop()
	if err := bundle.Write(f, b.guarded(), predicate); err != nil {
		return fmt.Errorf("bundle %s: %w", to, err)
	}
	opened, err := s.openBundle(ctx, f.Name(), 1<<50)
	if err != nil {
		return fmt.Errorf("bundle %s: it cannot be opened again: %w", to, err)
	}
	opened.close()
	if len(opened.reasons) > 0 {
		return opened.refusal(to)
	}
	if err := f.Publish(); err != nil {
		return hint(remedy, "bundle %s: %w", to, causeOf(err))
	}
	if b.lost > 0 {
		s.note("Note: %s not in the bundle, since they are not there any more.", view.Count(b.lost, "log"))
	}
	s.note("%s: %s; benchgraph open judges them again.", view.Clean(to), view.Count(len(b.files), "file"))
	return nil
}

// gather collects the files of the bundle.
func (b *bundling) gather(ctx context.Context, known *results.Known, found []findings.Findings,
	reports []hclspec.Report) (predicate bundle.Predicate, err error) {
	spec := b.project.Spec
	b.doc = bundleDoc{Format: view.Format, Benchgraph: version, Revision: bundle.Build(ctx), File: spec.Files[0],
		Logs: path.Dir(b.shortLog("x")), Known: *known}
	for _, r := range reports {
		b.doc.Reports = append(b.doc.Reports, r.Address.Name)
	}
	for _, step := range []func() error{b.given, b.projectFiles, func() error { return b.results(ctx) },
		func() error { return b.logs(found) }} {
		if err := step(); err != nil {
			return predicate, err
		}
	}
	rendered, id, err := b.place.renderAll(found, spec, reports)
	if err != nil {
		return predicate, err
	}
	for _, name := range sortedKeys(rendered) {
		b.add(bundle.Text(name, rendered[name]))
	}
	var text bytes.Buffer
	if err := view.JSON(&text, b.doc); err != nil {
		return predicate, err
	}
	b.add(bundle.Text(knownFile, text.Bytes()))
	return bundle.Predicate{Format: view.Format, Benchgraph: version, File: b.doc.File, Snapshot: id}, nil
}

// renderAll makes the files of reports, by their names in a bundle, and returns the ID of the snapshot.
func (p place) renderAll(found []findings.Findings, spec *hclspec.Spec,
	reports []hclspec.Report) (files map[string][]byte, id string, err error) {
	whole := reports[0]
	whole.Formats = []string{"json"}
	chosen := ofAll(found, reports)
	if files, err = p.render(chosen, spec, &whole); err != nil {
		return nil, "", err
	}
	for i, r := range reports {
		// a bundle belongs to results, not to one apply
		r.Formats = slices.DeleteFunc(slices.Clone(r.Formats), report.OfRun)
		made, err := p.render(of(found, r.Of), spec, &r)
		if err != nil {
			return nil, "", err
		}
		for name, text := range made {
			files[reportsPart+strconv.Itoa(i+1)+"/"+name] = text
		}
	}
	id, err = snapshotOf(chosen)
	return files, id, err
}

// add adds a file once.
func (b *bundling) add(f bundle.File) {
	if !b.names[f.Name] {
		b.names[f.Name] = true
		b.files = append(b.files, f)
	}
}

// given adds the values of variables. It adds variables of the environment only if their names stand in the files.
func (b *bundling) given() error {
	options, err := b.options(b.place, nil)
	if err != nil {
		return err
	}
	b.doc.Vars = options.Vars
	for _, name := range sortedKeys(options.EnvVars) {
		for _, file := range b.project.Spec.Files {
			text, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(file)))
			if err != nil {
				return err
			}
			if regexp.MustCompile(`\bvariable\b[\s":{]*` + regexp.QuoteMeta(name) + `\b|"` + regexp.QuoteMeta(name) +
				`"`).Match(text) {
				if b.doc.EnvVars == nil {
					b.doc.EnvVars = map[string]string{}
				}
				b.doc.EnvVars[name] = options.EnvVars[name]
			}
		}
	}
	for i, name := range options.VarFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		ext := ".hcl"
		if strings.HasSuffix(name, ".json") {
			ext = ".json"
		}
		inside := strconv.Itoa(i+1) + ext
		b.doc.VarFiles = append(b.doc.VarFiles, inside)
		b.add(bundle.Text(givenPart+inside, text))
	}
	return nil
}

// projectFiles adds the files that were read, the patches, the lock and the answers from the histories of repos. Of
// files that only need to exist, it adds the names.
func (b *bundling) projectFiles() error {
	spec := b.project.Spec
	for _, name := range sortedKeys(spec.Reads.Content) {
		if err := b.addFile(projectPart+name, filepath.Join(b.dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	for i := range spec.Sources {
		if patch := spec.Sources[i].Patch; patch != "" {
			if err := b.addFile(projectPart+patch, filepath.Join(b.dir, filepath.FromSlash(patch))); err != nil {
				return err
			}
		}
	}
	b.add(bundle.Text(projectPart+lockName, b.project.Lock.Bytes()))
	answers, err := b.past.Used()
	if err != nil {
		return err
	}
	if len(answers) > 0 {
		b.add(bundle.Text(historyFile, answers))
	}
	seen := map[string]bool{}
	for _, names := range []map[string]bool{spec.Reads.Regular, spec.Reads.Matched} {
		for _, name := range sortedKeys(names) {
			info, err := os.Stat(filepath.Join(b.dir, filepath.FromSlash(name)))
			switch {
			case err != nil, b.names[projectPart+name], seen[name], !bundle.Fits(name):
			case info.IsDir():
				b.doc.Folders = append(b.doc.Folders, name)
			default:
				b.doc.Present = append(b.doc.Present, name)
			}
			seen[name] = true
		}
	}
	return nil
}

// addFile adds a regular file of this machine.
func (b *bundling) addFile(name, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", from)
	}
	b.add(bundle.File{Name: name, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(from) }})
	return nil
}

// results adds the files of blocks and of the nodes that gather from blocks, from the store.
func (b *bundling) results(ctx context.Context) error {
	for _, n := range b.doc.All() {
		if n.Result == nil || n.Result.Files == nil {
			continue
		}
		entry, err := b.store.Get(ctx, n.Result.Key, true)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Address, err)
		}
		for _, f := range n.Result.Files {
			if name, within := inBundle(n.Result.Key, f.Path), bundle.Fits(f.Path); within {
				if err := b.addResult(name, entry, f); err != nil {
					return fmt.Errorf("%s: %w", n.Address, err)
				}
			}
		}
	}
	return nil
}

// inBundle returns the name in a bundle of a result's file.
func inBundle(key cache.Key, name string) string { return resultsPart + key.String() + "/" + name }

// addResult adds one file of a result. For a link it adds the file that the link leads to, since a bundle has no links.
func (b *bundling) addResult(name string, entry cache.Entry, f cache.File) error {
	from := filepath.Join(entry.Dir, filepath.FromSlash(f.Path))
	if f.Link == "" {
		return b.addFile(name, from)
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
	return b.addFile(name, from)
}

// logs adds the logs of blocks and of failed attempts.
func (b *bundling) logs(found []findings.Findings) error {
	var attempts []string
	for _, n := range b.doc.All() {
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
		if name := logsPart + attempt + ".log"; attempt != "" && bundle.Fits(name) {
			err := b.addFile(name, b.logOf(attempt))
			if errors.Is(err, os.ErrNotExist) {
				b.lost++
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// guarded returns the files of the bundle. Opening one returns an error if the file holds a secret.
func (b *bundling) guarded() []bundle.File {
	secrets := b.secrets()
	guarded := slices.Clone(b.files)
	for i, f := range guarded {
		guarded[i].Open = func() (io.ReadCloser, error) {
			if err := searched(f, secrets); err != nil {
				return nil, err
			}
			return f.Open()
		}
	}
	return guarded
}

// searched returns an error if the file holds a secret.
func searched(f bundle.File, secrets workdir.Secrets) error {
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
		return hint("Keep it out of the file and of what commands print, or unset it if it is none.",
			"it holds the value of the secret %s", found.Name)
	}
	if !strings.HasPrefix(f.Name, projectPart) {
		return nil
	}
	again, err := f.Open()
	if err != nil {
		return err
	}
	defer again.Close()
	text, err := io.ReadAll(io.LimitReader(again, 64<<20))
	if at, _, found := printable.Password(text); err == nil && found {
		line := 1 + bytes.Count(text[:at], []byte("\n"))
		err = hint("Let git or the registry ask for it, or take it from a secret.",
			"line %d holds an address with a password", line)
	}
	return err
}

// secrets returns the secrets that the file declares and the environment has.
func (b *bundling) secrets() (all workdir.Secrets) {
	for _, name := range b.project.Spec.Secrets() {
		if value, ok := b.env[name]; ok {
			all = append(all, workdir.Secret{Name: name, Value: value})
		}
	}
	return all
}

// records counts the blocks whose raw output is in a bundle.
func (d *bundleDoc) records(files map[string]string) (n int) {
	for _, node := range d.All() {
		if r := node.Result; r != nil && node.Kind == "trial" && files[inBundle(r.Key, sample.RecordFile)] != "" {
			n++
		}
	}
	return n
}
