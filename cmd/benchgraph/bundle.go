package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/bundle"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/report"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// bundle writes the reports and the results that they rest on into one file. The file gets its name only after it could
// be opened and judged.
func (s *session) bundle(ctx context.Context, to string, known *results.Known, found []findings.Findings,
	reports []hclspec.Report) error {
	c, predicate, err := s.gather(ctx, known, found, reports)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	const remedy = "Write it to a file of a directory that is there: -bundle=FILE."
	f, err := fs.Begin(to)
	if err != nil {
		return hint(remedy, "bundle %s: %w", to, fs.Cause(err))
	}
	defer f.Drop()
	if err := bundle.Write(f, c.Guarded(s.secrets()), predicate); err != nil {
		return fmt.Errorf("bundle %s: %w", to, err)
	}
	opened, err := s.openBundle(ctx, f.Name(), math.MaxInt64)
	if err != nil {
		return fmt.Errorf("bundle %s: it cannot be opened again: %w", to, err)
	}
	opened.Close()
	if len(opened.Reasons) > 0 {
		return opened.refusal(to)
	}
	if err := f.Publish(); err != nil {
		return hint(remedy, "bundle %s: %w", to, fs.Cause(err))
	}
	if c.Lost > 0 {
		s.note("Note: %s not in the bundle, since they are not there any more.", view.Count(c.Lost, "log"))
	}
	s.note("%s: %s; benchgraph open judges them again.", view.Clean(to), view.Count(len(c.Files), "file"))
	return nil
}

// gather collects the files of the bundle.
func (s *session) gather(ctx context.Context, known *results.Known, found []findings.Findings,
	reports []hclspec.Report) (c *bundle.Collection, predicate bundle.Predicate, err error) {
	spec := s.project.Spec
	c = bundle.NewCollection(bundle.Document{Format: view.Format, Benchgraph: version, Revision: bundle.Build(ctx),
		File: spec.Files[0], Logs: path.Dir(s.shortLog("x")), Known: *known})
	for _, r := range reports {
		c.Document.Reports = append(c.Document.Reports, r.Address.Name)
	}
	options, err := s.options(s.place, nil)
	if err != nil {
		return nil, predicate, err
	}
	answers, err := s.past.Used()
	if err != nil {
		return nil, predicate, err
	}
	err = c.AddProject(bundle.Project{Dir: s.dir, Spec: spec, Options: options, Lock: s.project.Lock.Bytes(),
		History: answers})
	if err != nil {
		return nil, predicate, err
	}
	if err := c.AddResults(ctx, s.store); err != nil {
		return nil, predicate, err
	}
	if err := c.AddLogs(found, s.logOf); err != nil {
		return nil, predicate, err
	}
	rendered, id, err := s.renderAll(found, spec, reports)
	if err != nil {
		return nil, predicate, err
	}
	for _, name := range sortedKeys(rendered) {
		c.Add(bundle.Text(name, rendered[name]))
	}
	var text bytes.Buffer
	if err := view.JSON(&text, c.Document); err != nil {
		return nil, predicate, err
	}
	c.Add(bundle.Text(bundle.DocumentFile, text.Bytes()))
	return c, bundle.Predicate{Format: view.Format, Benchgraph: version, File: spec.Files[0], Snapshot: id}, nil
}

// renderAll makes the files of reports, by their names in a bundle, and returns the ID of the snapshot.
func (p place) renderAll(found []findings.Findings, spec *hclspec.Spec,
	reports []hclspec.Report) (files map[string][]byte, id string, err error) {
	whole := reports[0]
	whole.Formats = []string{"json"}
	chosen := reportedFindings(found, reports)
	if files, err = p.render(chosen, spec, &whole); err != nil {
		return nil, "", err
	}
	for i, r := range reports {
		// a bundle belongs to results, not to one apply
		r.Formats = slices.DeleteFunc(slices.Clone(r.Formats), report.OfRun)
		made, err := p.render(findingsOf(found, r.Of), spec, &r)
		if err != nil {
			return nil, "", err
		}
		for name, text := range made {
			files[bundle.ReportsPart+strconv.Itoa(i+1)+"/"+name] = text
		}
	}
	id, err = snapshotOf(chosen)
	return files, id, err
}

// secrets returns the secrets that the file declares and the environment has.
func (s *session) secrets() (all workdir.Secrets) {
	for _, name := range s.project.Spec.Secrets() {
		if value, ok := s.env[name]; ok {
			all = append(all, workdir.Secret{Name: name, Value: value})
		}
	}
	return all
}
