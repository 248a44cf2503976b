package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/bundle"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
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
	defer b.Close()
	if b.judged == nil {
		return b.refusal(path)
	}
	if o.json {
		if _, err := a.stdout.Write(b.judged[bundle.ReportFile]); err != nil {
			return err
		}
	} else {
		view.Verdicts(a.stdout, a.style(a.stdout), b.rows)
	}
	if len(b.Reasons) > 0 {
		return b.refusal(path)
	}
	a.note("%s: judged again from the raw outputs of %s: the table is the one in the bundle. %s match %s, which has "+
		"the SHA-256 %s.", path,
		view.Count(b.Document.Blocks(b.Files), "block"), view.Count(len(b.Files), "file"),
		bundle.StatementFile, b.Digest)
	if !b.sameBuild() {
		a.note("Note: benchgraph %s (revision %s) made it, and this is %s (revision %s). The rows were compared, and "+
			"the files below %s were not: what these say may differ.", view.Clean(b.Document.Benchgraph),
			view.Clean(cmp.Or(b.Document.Revision, "unknown")), version, cmp.Or(b.build, "unknown"), bundle.ReportsPart)
	}
	return gate.Refusal(b.rows)
}

// opened is a bundle that is judged again.
type opened struct {
	*bundle.Opened
	// the files of its reports, made anew; nil: not judged, since files of the bundle are not those that it states
	judged map[string][]byte
	rows   []stats.Comparison
	build  string // of this benchgraph
}

// sameBuild reports whether the bundle is from a benchgraph that writes the same bytes as this one.
func (o *opened) sameBuild() bool {
	return o.build != "" && o.build == o.Document.Revision && o.Document.Benchgraph == version
}

// refusal returns the error for a bundle that differs from its own statements.
func (o *opened) refusal(path string) error {
	shown := o.Reasons[:min(len(o.Reasons), 20)]
	if n := len(o.Reasons) - len(shown); n > 0 {
		shown = append(slices.Clip(shown), fmt.Sprintf("and %d more", n))
	}
	remedy := "Do not rely on it. Ask whoever made it for another one."
	if b := o.Document.Benchgraph; b != "" && !o.sameBuild() {
		remedy += fmt.Sprintf(" Another version may judge in another way: open it with benchgraph %s (revision %s), "+
			"which made it.", view.Clean(b), view.Clean(cmp.Or(o.Document.Revision, "unknown")))
	}
	return hint(remedy, "%w", &stats.RefusedError{What: "bundle " + path + " is not what it says", Reasons: shown})
}

// openBundle unpacks and judges a bundle. The caller must close the result.
func (a *app) openBundle(ctx context.Context, path string, maxBytes int64) (*opened, error) {
	unpacked, err := bundle.Open(path, maxBytes)
	if err != nil {
		return nil, err
	}
	o := &opened{Opened: unpacked, build: bundle.Build(ctx)}
	if len(o.Reasons) > 0 {
		return o, nil
	}
	if err := o.judge(); err != nil {
		o.Close()
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return o, nil
}

// judge judges the unpacked bundle.
func (o *opened) judge() error {
	if err := o.ReadDocument(); err != nil {
		return err
	}
	lock, err := o.projectPlace().loadLock()
	if err != nil {
		return err
	}
	options, err := o.Options(lock)
	if err != nil {
		return err
	}
	spec, files, diags := hclspec.Load(options)
	if diags.HasErrors() {
		return &diagError{diags, files}
	}
	o.Reasons = append(o.Reasons, o.Document.OtherPatches(spec, o.Files, bundle.ProjectPart)...)
	found, err := o.Document.Judge(spec, o.Result)
	if err != nil {
		return err
	}
	reports, err := reportsOf(spec, &reportFlags{}, slices.Clone(o.Document.Reports))
	if err != nil {
		return err
	}
	if o.judged, _, err = o.projectPlace().renderAll(found, spec, reports); err != nil {
		return err
	}
	o.rows = rowsOf(reportedFindings(found, reports), spec)
	return o.compareReports()
}

// projectPlace returns the place of the unpacked project, with logs where reports show them. Nothing is read there.
func (o *opened) projectPlace() place {
	dir := o.Project()
	state := filepath.Dir(filepath.FromSlash(o.Document.Logs))
	if !filepath.IsAbs(state) {
		state = filepath.Join(dir, state)
	}
	return place{dir: dir, lock: filepath.Join(dir, bundle.LockFile), state: state}
}

// compareReports compares the new reports with the reports in the bundle. Reports of another version or revision, which
// may write them in another way, are compared by their rows.
func (o *opened) compareReports() error {
	const most = 1 << 30
	has, err := o.Read(bundle.ReportFile, most)
	if err != nil {
		return err
	}
	rows, err := bundle.RowDifferences(bundle.ReportFile, has, o.judged[bundle.ReportFile])
	if err != nil {
		return err
	}
	o.Reasons = append(o.Reasons, rows...)
	if !o.sameBuild() || len(rows) > 0 {
		return nil
	}
	for _, name := range sortedKeys(o.judged) {
		has, err := o.Read(name, most)
		if err != nil {
			return err
		}
		if !bytes.Equal(has, o.judged[name]) {
			o.Reasons = append(o.Reasons, fmt.Sprintf("%s differs in line %d from what is judged now", name,
				bundle.FirstDifference(has, o.judged[name])))
		}
	}
	return nil
}

// reportedFindings returns the findings of the reports' compares.
func reportedFindings(found []findings.Findings, reports []hclspec.Report) []findings.Findings {
	var all []hclspec.Address
	for _, r := range reports {
		all = append(all, r.Of...)
	}
	return findingsOf(found, all)
}
