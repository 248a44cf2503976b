package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/report"
	"github.com/benchgraph/benchgraph/stats"
)

type reportFlags struct {
	json    bool
	formats string
	dir     string
	bundle  string
	allow   cli.List
	failOn  gate.Gate
}

func (a *app) report() cli.Command {
	o := &reportFlags{}
	return cli.Command{
		Name: "report", Args: "[NAME...]", Max: -1,
		Summary: "write the reports from stored results; parse them again, run nothing",
		Long:    "Without NAME, all reports of the file; one of all compares when the file declares none.",
		Flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&o.json, "json", false, "write one JSON document to stdout, and no file")
			a.json = append(a.json, &o.json)
			fs.StringVar(&o.formats, "format", "",
				"write `FORMATS` instead of the formats of the file: "+strings.Join(report.Formats(), ","))
			fs.StringVar(&o.dir, "dir", "",
				"write to `DIR`, relative to the project, instead of the directory in the file")
			fs.StringVar(&o.bundle, "bundle", "",
				"also write a bundle of the reports and their raw results to `FILE`, for benchgraph open")
			allowFlag(fs, &o.allow)
			o.failOn.Flag(fs)
		},
		Run: func(ctx context.Context, args []string) error { return a.runReport(ctx, o, args) },
	}
}

func (a *app) runReport(ctx context.Context, o *reportFlags, names []string) error {
	look := &shared.Look{}
	s, err := a.open(ctx, access{offline: true, look: look, allow: o.allow})
	if err != nil {
		return err
	}
	defer s.close()
	reports, err := reportsOf(s.project.Spec, o, names)
	if err != nil {
		return err
	}
	p, err := s.measured(ctx)
	if err != nil {
		return err
	}
	found, err := s.project.Stored(p).Findings(ctx)
	if err != nil {
		return err
	}
	_, all := s.project.Stored(p).Measured()
	lacking := s.lacking(look, all)
	known, err := s.besides(ctx, p, found, o.bundle != "")
	if lost, ok := errors.AsType[*results.LostError](err); ok {
		return hint("benchgraph apply -replace="+sh.Quote(lost.Block)+" measures the block again, on a machine of the "+
			"class that measured it.", "bundle: %w", err)
	}
	if err != nil {
		return err
	}
	if o.bundle != "" {
		declared, err := reportsOf(s.project.Spec, &reportFlags{}, names) // without the flags
		if err != nil || lacking != nil && fileExists(o.bundle) {
			return cmp.Or(err, lacking)
		}
		if err := s.bundle(ctx, o.bundle, known, reportedFindings(found, declared), declared); err != nil {
			return err
		}
	}
	var rows []stats.Comparison
	if o.json {
		chosen := reportedFindings(found, reports)
		doc, err := s.document(chosen, s.project.Spec, &reports[0])
		if err != nil {
			return err
		}
		if len(s.warnings) > 0 {
			doc.Diagnostics = view.Diagnostics(s.warnings)
		}
		files, err := report.Render(doc, "json")
		_, failed := a.stdout.Write(files["report.json"])
		return cmp.Or(err, failed, o.failOn.Check(rowsOf(chosen, s.project.Spec), lacking))
	}
	left := false
	for _, r := range reports {
		chosen := findingsOf(found, r.Of)
		rows = append(rows, rowsOf(chosen, s.project.Spec)...)
		spared, err := s.write(r, chosen, lacking != nil)
		if err != nil {
			return err
		}
		left = left || spared
	}
	view.Verdicts(a.stderr, a.style(a.stderr), rows)
	if err := o.failOn.Check(rows, lacking); err != nil || !left {
		return err
	}
	return lacking
}

// besides adds the results of other classes of machines to the rows of found. For a bundle, it also returns all that
// these rest on.
func (s *session) besides(ctx context.Context, p *engine.Plan, found []findings.Findings,
	bundled bool) (*results.Known, error) {
	known := &results.Known{}
	var err error
	if bundled {
		if known, err = s.project.Stored(p).Known(ctx, found); err != nil {
			return nil, err
		}
	}
	if known.Replicas, err = s.project.Replicas(ctx, found, bundled); err != nil {
		return nil, err
	}
	for _, r := range known.Replicas {
		findings.Beside(found, r.Found)
	}
	return known, known.Lost()
}

// reportsOf returns the named reports, changed by the flags.
func reportsOf(spec *hclspec.Spec, o *reportFlags, names []string) ([]hclspec.Report, error) {
	declared := slices.Clone(spec.Reports)
	if len(declared) == 0 {
		all := hclspec.Report{Formats: []string{"markdown", "json"}, Dir: "report"}
		all.Address = hclspec.Address{Kind: "report", Name: "report"}
		for _, c := range spec.Compares {
			all.Of = append(all.Of, c.Address)
		}
		declared = append(declared, all)
	}
	var known []string
	for i := range declared {
		r := &declared[i]
		known = append(known, r.Address.Name)
		if o.formats != "" {
			r.Formats = strings.Split(o.formats, ",")
		}
		if o.dir != "" {
			r.Dir = o.dir
		}
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, "report.")
		if !slices.Contains(known, names[i]) {
			remedy := "The file has no report block; without a name, all its compares are reported."
			if len(spec.Reports) > 0 {
				remedy = "The file's report blocks are " + several(known) + "."
			}
			return nil, hint(remedy, "there is no report %q%s", name, cli.Suggest(names[i], known))
		}
	}
	if len(names) > 0 {
		declared = slices.DeleteFunc(declared, func(r hclspec.Report) bool {
			return !slices.Contains(names, r.Address.Name)
		})
	}
	return declared, nil
}

// findingsOf returns the findings of some compares.
func findingsOf(found []findings.Findings, compares []hclspec.Address) []findings.Findings {
	var chosen []findings.Findings
	for _, f := range found {
		if slices.ContainsFunc(compares, func(a hclspec.Address) bool { return a.Instance() == f.Compare }) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// rowsOf returns the rows of findings. Each open row has the blocks that would settle it.
func rowsOf(found []findings.Findings, spec *hclspec.Spec) []stats.Comparison {
	var rows []stats.Comparison
	for _, f := range found {
		settled, _ := f.Settled(pricesOf(spec))
		rows = append(rows, settled...)
	}
	stats.SetQ(rows)
	return rows
}

func (s *session) reportDir(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(s.dir, filepath.FromSlash(dir))
}

// write writes the files of one report, and prints their names. With spare, it leaves existing files that differ as
// they are.
func (s *session) write(r hclspec.Report, found []findings.Findings, spare bool) (spared bool, err error) {
	for _, name := range r.Formats {
		if !slices.Contains(report.Formats(), name) {
			return false, &cli.UsageError{Message: fmt.Sprintf("there is no report format %q%s", name,
				cli.Suggest(name, report.Formats())), Remedy: "known: " + strings.Join(report.Formats(), ", ")}
		}
	}
	files, err := s.render(found, s.project.Spec, &r)
	if err != nil {
		return false, err
	}
	dir := s.reportDir(r.Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, fmt.Errorf("%s: %w", r.Address, err)
	}
	for _, name := range sortedKeys(files) {
		path := filepath.Join(dir, name)
		have, err := os.ReadFile(path)
		switch same := err == nil && bytes.Equal(have, files[name]); {
		case !same && err == nil && spare:
			s.note("Note: %s stays as it is: it may know more. -dir=DIR writes elsewhere.", view.Clean(path))
			spared = true
			continue
		case !same:
			if err := fs.Replace(path, files[name]); err != nil {
				return spared, fmt.Errorf("%s: %w", r.Address, err)
			}
		}
		fmt.Fprintln(s.stdout, view.Clean(path))
	}
	return spared, nil
}
