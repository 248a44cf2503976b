package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec/dataset"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
)

type importFlags struct {
	out, params, from string
	columns, defaults cli.List
	force, results    bool
}

func (a *app) importTable() cli.Command {
	o := &importFlags{}
	return cli.Command{
		Name: "import", Args: "FILE...", Min: 1, Max: -1,
		Summary: "convert a table of commits (JSON, JSON lines, CSV, Parquet) to commit blocks; - is standard input",
		Long: `Columns with a usual name are found: commit, sha, rev; parent; title, subject; model; command, test_script; gpus; mode; repo.
A benchmark's command is taken apart: flags of the engine become the parameter server, those of the benchmark client.
Rows that hold no commit are reported with their lines; the exit code is then 3, and all others are written.
With -results, results that the table records are written as JSON lines, for report { recorded = [file("FILE")] }: they are listed
beside what is measured here, and never compared.`,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.out, "out", "", "write to `FILE` instead of stdout")
			fs.BoolVar(&o.force, "force", false, "let -out replace a file")
			fs.BoolVar(&o.results, "results", false, "write the recorded results of the table instead of its commits")
			fs.StringVar(&o.from, "from", "", "read only the `LISTS` NAME,NAME of a JSON object")
			fs.StringVar(&o.params, "params", "", "also make parameters of the `COLUMNS` NAME,NAME")
			fs.Var(&o.columns, "map", "take a field or a parameter from a column: `NAME=COLUMN`; may be repeated")
			fs.Var(&o.defaults, "default", "leave out a parameter with this value: `NAME=VALUE`; may be repeated")
		},
		Run: func(ctx context.Context, args []string) error {
			done := make(chan error, 1)
			go func() { done <- a.runImport(o, args) }() // a large table, or standard input, takes time
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
	}
}

func (a *app) runImport(o *importFlags, names []string) error {
	options, err := o.options()
	if err != nil {
		return err
	}
	if err := o.writable(); err != nil {
		return err
	}
	rows, problems, err := a.readTables(names, o.from)
	if err != nil {
		return err
	}
	if o.results {
		return a.importResults(o, rows, problems)
	}
	commits, more, err := dataset.Commits(rows, options)
	lost := view.Problems(a.stderr, a.style(a.stderr), append(problems, more...))
	if err != nil {
		return hint("Say with -map rev=COLUMN which column has the commits; benchgraph help import lists the names "+
			"that are known.", "import: %w", err)
	}
	var text bytes.Buffer
	if err := dataset.Write(&text, importComment(names, commits, lost), commits, options.Defaults); err != nil {
		return err
	}
	if err := a.deliver(o, text.Bytes()); err != nil {
		return err
	}
	if most := dataset.Excess(text.Bytes()); most != "" {
		a.note("Warning: this is more than a project can include. %s", most)
	}
	a.note("%s of %s.", view.Count(len(commits), "commit"), view.Count(len(commits)+lost, "row"))
	if lost > 0 {
		return &failedError{lost}
	}
	return nil
}

// importResults writes the recorded results of a table.
func (a *app) importResults(o *importFlags, rows []dataset.Row, problems []dataset.Problem) error {
	lines, more := dataset.Results(rows)
	lost := view.Problems(a.stderr, a.style(a.stderr), append(problems, more...))
	text, err := recorded.Write(lines)
	if err != nil {
		return err
	}
	if err := a.deliver(o, text); err != nil {
		return err
	}
	a.note("%s.", view.Count(len(lines), "result"))
	if refused := recorded.Keep(dataset.Universe(rows, lines), lines, units.Convert).Refused; len(refused) > 0 {
		why := make([]string, len(refused))
		for i, r := range refused {
			why[i] = r.String()
		}
		return hint("Correct the statement, or leave it out: reports compute it and list it as refused.", "%w",
			&stats.RefusedError{What: "the table says what does not follow from its results", Reasons: why})
	}
	if lost > 0 {
		return &failedError{lost}
	}
	return nil
}

// importComment returns the comment above the blocks, which names their source.
func importComment(names []string, commits []dataset.Commit, lost int) []string {
	bases := make([]string, len(names))
	for i, name := range names {
		bases[i] = filepath.Base(name)
	}
	line := fmt.Sprintf("Made by benchgraph import of %s: %s", printable.Some(bases, 3),
		view.Count(len(commits), "commit"))
	if lost > 0 {
		line += fmt.Sprintf(", %s left out", view.Count(lost, "row"))
	}
	return []string{line + "."}
}

func (o *importFlags) options() (dataset.Options, error) {
	options := dataset.Options{Columns: map[string]string{}, Defaults: map[string]string{}, Params: commaList(o.params)}
	for _, to := range []struct {
		flag string
		list cli.List
		into map[string]string
	}{{"map", o.columns, options.Columns}, {"default", o.defaults, options.Defaults}} {
		for _, assignment := range to.list {
			name, value, ok := strings.Cut(assignment, "=")
			if !ok || name == "" {
				return options, hint(fmt.Sprintf("Write -%s NAME=VALUE.", to.flag), "-%s %s: there is no equals sign",
					to.flag, assignment)
			}
			to.into[name] = value
		}
	}
	return options, nil
}

// commaList splits a list of names at commas.
func commaList(list string) []string {
	var all []string
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// writable returns an error if -out names a file that -force does not allow to replace.
func (o *importFlags) writable() error {
	if o.out == "" || o.force {
		return nil
	}
	if info, err := os.Stat(o.out); err == nil && info.Mode().IsRegular() {
		return hint("Choose another name, or replace it with -force.", "import: %s is there already", o.out)
	}
	return nil
}

// deliver writes text to stdout, or to the file that -out names.
func (a *app) deliver(o *importFlags, text []byte) error {
	if o.out == "" {
		return a.raw(text)
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if err := fs.Replace(o.out, text); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	use := "Let benchmarks.hcl include it."
	if o.results {
		use = fmt.Sprintf("A report shows it: recorded = [file(%q)].", filepath.ToSlash(o.out))
	}
	a.note("Written: %s. %s", o.out, use)
	return nil
}

func (a *app) readTables(names []string, from string) (rows []dataset.Row, problems []dataset.Problem, err error) {
	const remedy = "A table is a JSON array, an object that holds one, JSON lines, CSV with a heading, or Parquet."
	for _, name := range names {
		data, err := a.readTable(name)
		if err != nil {
			return nil, nil, hint(remedy, "import %s: %w", name, err)
		}
		some, wrong, err := dataset.Read(filepath.Base(name), data)
		if err != nil {
			return nil, nil, hint(remedy, "import %s: %w", name, err)
		}
		rows, problems = append(rows, some...), append(problems, wrong...)
	}
	lists := commaList(from)
	if len(lists) == 0 {
		return rows, problems, nil
	}
	var found []string
	for _, row := range rows {
		if !slices.Contains(found, row.List) && row.List != "" {
			found = append(found, row.List)
		}
	}
	for _, name := range lists {
		if !slices.Contains(found, name) {
			return nil, nil, hint("Lists that are there: "+strings.Join(found, ", ")+".", "import: there is no list %q",
				name)
		}
	}
	other := func(row dataset.Row) bool { return !slices.Contains(lists, row.List) }
	rows = slices.DeleteFunc(rows, other)
	problems = slices.DeleteFunc(problems, func(p dataset.Problem) bool { return other(p.Row) })
	return rows, problems, nil
}

// readTable reads a regular file, or standard input.
func (a *app) readTable(name string) ([]byte, error) {
	var from io.Reader = a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, errors.New("it is a directory")
		}
		from = f
	}
	return fs.ReadAll(from, dataset.MaxFile)
}
