package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/bundle"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/packs"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/stats"
)

type openFlags struct {
	json    bool
	maxSize string
}

func (a *app) openCommand() cli.Command {
	o := &openFlags{}
	return cli.Command{
		Name: "open", Args: "BUNDLE", Min: 1, Max: 1,
		Summary: "judge a bundle of report -bundle again, offline, from its raw outputs",
		Long: "Nothing of the bundle is run, and nothing of this project is read or changed. The table is that of " +
			"the report in the bundle; where a\n" +
			"figure, a file or a digest differs, open says which and ends with exit code 4.",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.StringVar(&o.maxSize, "max-size", "4GiB", "refuse a bundle of more than `SIZE`")
		},
		Run: func(ctx context.Context, args []string) error { return a.runOpen(ctx, o, args[0]) },
	}
}

func (a *app) runOpen(ctx context.Context, o *openFlags, path string) error {
	size, err := cli.Size("-max-size", o.maxSize)
	if err != nil {
		return err
	}
	b, err := a.openBundle(ctx, path, size)
	if err != nil {
		return err
	}
	defer b.close()
	if b.judged == nil {
		return b.refusal(path)
	}
	if o.json {
		if _, err := a.stdout.Write(b.judged[reportFile]); err != nil {
			return err
		}
	} else {
		view.Verdicts(a.stdout, a.style(a.stdout), b.rows, false)
	}
	if len(b.reasons) > 0 {
		return b.refusal(path)
	}
	a.note("%s: judged again from the raw outputs of %s: the table is the one in the bundle. %s match %s, which has "+
		"the SHA-256 %s.", path, view.Count(b.doc.records(b.contents.Files), "block"),
		view.Count(len(b.contents.Files), "file"), bundle.StatementFile, b.contents.Digest)
	if !b.own() {
		a.note("Note: benchgraph %s (revision %s) made it, and this is %s (revision %s). The rows were compared, and "+
			"the files below %s were not: what these say may differ.", view.Clean(b.doc.Benchgraph),
			view.Clean(cmp.Or(b.doc.Revision, "unknown")), version, cmp.Or(b.build, "unknown"), reportsPart)
	}
	return gate.Refusal(b.rows)
}

// opened is a bundle that was unpacked into a temporary directory.
type opened struct {
	dir      string
	contents *bundle.Contents
	doc      bundleDoc
	// the files of its reports, made anew; nil: not judged, since files of the bundle are not those that it states
	judged  map[string][]byte
	rows    []stats.Comparison
	reasons []string // the differences between the bundle and its own statements
	build   string   // of this benchgraph
}

// own reports whether the bundle is from a benchgraph that writes the same bytes as this one.
func (o *opened) own() bool {
	return o.build != "" && o.build == o.doc.Revision && o.doc.Benchgraph == version
}

func (o *opened) close() { _ = os.RemoveAll(o.dir) } // it holds only files

// refusal returns the error for a bundle that differs from its own statements.
func (o *opened) refusal(path string) error {
	shown := o.reasons[:min(len(o.reasons), 20)]
	if n := len(o.reasons) - len(shown); n > 0 {
		shown = append(slices.Clip(shown), fmt.Sprintf("and %d more", n))
	}
	remedy := "Do not rely on it. Ask whoever made it for another one."
	if b := o.doc.Benchgraph; b != "" && !o.own() {
		remedy += fmt.Sprintf(" Another version may judge in another way: open it with benchgraph %s (revision %s), "+
			"which made it.", view.Clean(b), view.Clean(cmp.Or(o.doc.Revision, "unknown")))
	}
	return hint(remedy, "%w", &stats.RefusedError{What: "bundle " + path + " is not what it says", Reasons: shown})
}

// openBundle unpacks and judges a bundle. The caller must close the result.
func (a *app) openBundle(ctx context.Context, path string, maxBytes int64) (*opened, error) {
	dir, err := os.MkdirTemp("", "benchgraph-open-")
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	o := &opened{dir: dir, build: bundle.Build(ctx)}
	if err := o.unpack(path, maxBytes); err != nil {
		o.close()
		return nil, err
	}
	if len(o.reasons) > 0 {
		return o, nil
	}
	if err := o.judge(); err != nil {
		o.close()
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return o, nil
}

func (o *opened) unpack(path string, maxBytes int64) error {
	const remedy = "Make one with benchgraph report -bundle=FILE."
	f, err := os.Open(path)
	if err != nil {
		return hint(remedy, "bundle %s: %w", path, causeOf(err))
	}
	defer f.Close()
	o.contents, err = bundle.Unpack(f, o.dir, maxBytes)
	if large := (*bundle.TooLargeError)(nil); errors.As(err, &large) {
		return hint("If you trust whoever made it, open it with a larger -max-size.", "bundle %s: %w", path, err)
	}
	if err != nil {
		return hint(remedy, "bundle %s: %w", path, err)
	}
	o.reasons = o.contents.Differences
	return nil
}

// judge judges the unpacked bundle.
func (o *opened) judge() error {
	if err := o.read(); err != nil {
		return err
	}
	o.check()
	options, err := o.options()
	if err != nil {
		return err
	}
	spec, files, diags := hclspec.Load(options)
	if diags.HasErrors() {
		return &diagError{diags, files}
	}
	o.reasons = append(o.reasons, o.doc.OtherPatches(spec, o.contents.Files, projectPart)...)
	found, err := o.doc.Judge(spec, func(n *results.KnownNode) string {
		dir := filepath.Join(o.dir, resultsPart, n.Result.Key.String())
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return ""
		}
		return dir
	})
	if err != nil {
		return err
	}
	reports, err := reportsOf(spec, &reportFlags{}, slices.Clone(o.doc.Reports))
	if err != nil {
		return err
	}
	if o.judged, _, err = o.place().renderAll(found, spec, reports); err != nil {
		return err
	}
	o.rows = rowsOf(ofAll(found, reports), spec)
	return o.hold()
}

// place returns the place of the unpacked project, with logs where reports show them. Nothing is read there.
func (o *opened) place() place {
	dir := filepath.Join(o.dir, projectPart)
	state := filepath.Dir(filepath.FromSlash(o.doc.Logs))
	if !filepath.IsAbs(state) {
		state = filepath.Join(dir, state)
	}
	return place{dir: dir, lock: filepath.Join(dir, lockName), state: state}
}

func (o *opened) read() error {
	text, err := o.file(knownFile, 512<<20)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &o.doc); err != nil {
		return fmt.Errorf("%s: %w", knownFile, err)
	}
	if major, _, _ := strings.Cut(o.doc.Format, "."); major != "1" {
		return hint("Open it with a newer benchgraph.", "its format is %.40q, and this benchgraph reads 1.x",
			o.doc.Format)
	}
	return nil
}

// file returns the content of a file of the bundle.
func (o *opened) file(name string, most int64) ([]byte, error) {
	f, err := os.OpenInRoot(o.dir, name)
	if err != nil {
		return nil, fmt.Errorf("%.80s: %w", name, causeOf(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%.80s has more than %d bytes", name, most)
	}
	return text, err
}

// check compares keys with the texts that they are digests of, and files of results with the digests of the store that
// they came from.
func (o *opened) check() {
	if err := o.doc.Lost(); err != nil {
		o.reasons = append(o.reasons, err.Error())
	}
	for _, n := range o.doc.All() {
		if n.Text != "" && cache.Key(sha256.Sum256([]byte(n.Text))) != n.Key {
			o.reasons = append(o.reasons, fmt.Sprintf("the key of %s is not that of its text", n.Address))
		}
		r := n.Result
		if r == nil || r.Files == nil {
			continue
		}
		if !r.Lists() {
			o.reasons = append(o.reasons, fmt.Sprintf("the digest of the result of %s is not that of its files",
				n.Address))
		}
		for _, f := range r.Files {
			if f.Link == "" && bundle.Fits(f.Path) && o.contents.Files[inBundle(r.Key, f.Path)] != f.SHA256 {
				o.reasons = append(o.reasons, fmt.Sprintf("%q of %s is not the file that was stored", f.Path,
					n.Address))
			}
		}
	}
}

// options returns the options to read the project as its benchgraph read it.
func (o *opened) options() (hclspec.Options, error) {
	p := o.place()
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return hclspec.Options{}, fmt.Errorf("%s: %w", projectPart, causeOf(err))
	}
	defer root.Close()
	for i, name := range slices.Concat(o.doc.Folders, o.doc.Present) {
		if !bundle.Fits(name) {
			return hclspec.Options{}, fmt.Errorf("%s: %.80q is no name of a file", knownFile, name)
		}
		dir := filepath.Dir(name)
		if i < len(o.doc.Folders) {
			dir = name
		}
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return hclspec.Options{}, err
		}
		if i >= len(o.doc.Folders) {
			f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				return hclspec.Options{}, err
			}
		}
	}
	lock, err := p.loadLock()
	if err != nil {
		return hclspec.Options{}, err
	}
	options := hclspec.Options{Dir: p.dir, File: o.doc.File, Vars: o.doc.Vars, EnvVars: o.doc.EnvVars, Lock: lock,
		Packs: packs.FS, History: history.Open(filepath.Join(o.dir, historyFile))}
	for _, name := range o.doc.VarFiles {
		if !bundle.Fits(name) || o.contents.Files[givenPart+name] == "" {
			return options, fmt.Errorf("%s: there is no file of variables %.80q", knownFile, name)
		}
		options.VarFiles = append(options.VarFiles, filepath.Join(o.dir, givenPart, name))
	}
	return options, nil
}

// hold compares the new reports with the reports in the bundle. Reports of another version or revision, which may write
// them in another way, are compared by their rows.
func (o *opened) hold() error {
	const most = 1 << 30
	has, err := o.file(reportFile, most)
	if err != nil {
		return err
	}
	rows, err := bundle.RowDifferences(reportFile, has, o.judged[reportFile])
	if err != nil {
		return err
	}
	o.reasons = append(o.reasons, rows...)
	if !o.own() || len(rows) > 0 {
		return nil
	}
	for _, name := range sortedKeys(o.judged) {
		has, err := o.file(name, most)
		if err != nil {
			return err
		}
		if !bytes.Equal(has, o.judged[name]) {
			o.reasons = append(o.reasons, fmt.Sprintf("%s differs in line %d from what is judged now", name,
				bundle.FirstDifference(has, o.judged[name])))
		}
	}
	return nil
}

// ofAll returns the findings of the reports' compares.
func ofAll(found []findings.Findings, reports []hclspec.Report) []findings.Findings {
	var all []hclspec.Address
	for _, r := range reports {
		all = append(all, r.Of...)
	}
	return of(found, all)
}
