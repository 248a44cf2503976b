package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/draft"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/dataset"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/source/git/worktree"
)

type initFlags struct {
	repo, span, bench string
	draft.Reading
}

func (a *app) initialise() cli.Command {
	o := &initFlags{}
	return cli.Command{
		Name: "init", Args: "[DATASET]", Max: 1,
		Summary: "write a commented benchmarks.hcl from commits of a repository or from a table",
		Long: "Without DATASET, the commits are those of -range, by default the last one of the repository, each\n" +
			"measured against its parent. DATASET is a table of commits as import reads it. The benchmark command\n" +
			"is found by go.mod, Cargo.toml or pyproject.toml; -bench says another one. A metric that parse does\n" +
			"not find in the output needs -match and -better.\n" +
			"A file that is there is never replaced.",
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.repo, "repo", ".", "measure the repository at `PATH`, or at a URL where there is a DATASET")
			fs.StringVar(&o.span, "range", "", "measure the commits of a range `A..B`")
			fs.StringVar(&o.bench, "bench", "", "measure with `COMMAND`, run by sh at the top of the tree")
			o.Reading.Flags(fs, "")
		},
		Run: func(ctx context.Context, args []string) error { return a.runInit(ctx, o, args) },
	}
}

func (a *app) runInit(ctx context.Context, o *initFlags, args []string) error {
	if err := o.Check(); err != nil {
		return err
	}
	place, err := a.place()
	if err != nil {
		return err
	}
	path := filepath.Join(place.dir, cmp.Or(place.file, hclspec.RootFiles[0]))
	for _, existing := range []string{path, filepath.Join(place.dir, hclspec.RootFiles[1])} {
		if fileExists(existing) {
			return hint("Choose another directory with -chdir=DIR, or another name with -f FILE.",
				"init: %s is there already", existing)
		}
	}
	p := draft.Project{Repo: o.repo, After: true, Head: []string{
		"Which of these commits made the program faster, and by how much?",
		"",
		"benchgraph plan says what is to be done, benchgraph apply does it, and docs/language.md explains every block.",
	}}
	host := executor.NewHost(executor.HostOptions{Owner: place.dir})
	tree, err := a.repository(ctx, host, o, place, &p, len(args) > 0)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if o.span != "" {
			return &cli.UsageError{Message: "a table names its commits itself", Remedy: "leave out either"}
		}
		err = a.fromTable(&p, args[0])
	} else {
		err = p.TakeRange(ctx, tree, o.span)
	}
	if err != nil {
		return err
	}
	if p.Bench, err = o.command(tree); err != nil {
		return err
	}
	if err := fs.Replace(path, p.HCL()); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	a.note("Written: %s.%s Look at the command of the benchmark, then: benchgraph plan", path, place.above())
	return nil
}

// repository finds the repository on this machine; nil if it is elsewhere.
func (a *app) repository(ctx context.Context, host *executor.Host, o *initFlags, at place, p *draft.Project,
	elsewhere bool) (*worktree.Tree, error) {
	if elsewhere && strings.Contains(o.repo, "://") {
		return nil, nil
	}
	dir, err := filepath.Abs(a.below(o.repo))
	if err != nil {
		return nil, err
	}
	w, err := worktree.Open(ctx, host, dir, a.gitEnviron())
	if errors.Is(err, worktree.ErrNone) {
		return nil, hint("Say with -repo=PATH where a clone is; a bare repository has no files.", "init: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("init: -repo %s: %w", o.repo, err)
	}
	p.Repo = w.Top
	if rel, err := filepath.Rel(at.dir, w.Top); err == nil && !strings.HasPrefix(rel, "../../..") {
		p.Repo = filepath.ToSlash(rel)
	}
	return w, nil
}

// fromTable reads the commits of a table into the project.
func (a *app) fromTable(p *draft.Project, name string) error {
	if strings.Contains(name, "..") && !fileExists(a.below(name)) {
		return &cli.UsageError{Message: "init takes a table of commits, and there is no file " + name,
			Remedy: "a range of commits is written -range=" + name}
	}
	rows, problems, err := a.readTables([]string{name}, "")
	if err != nil {
		return err
	}
	commits, more, err := dataset.Commits(rows, dataset.Options{})
	lost := view.Problems(a.stderr, a.style(a.stderr), append(problems, more...))
	if err != nil {
		return hint("benchgraph import -map rev=COLUMN says which column has the commits; include what it writes.",
			"init: %w", err)
	}
	for i := range commits {
		if commits[i].Repo != "" {
			return hint("Write the commits with benchgraph import, and a repo block for each.",
				"init: the table has commits of several repositories")
		}
	}
	var text bytes.Buffer
	if err := dataset.Write(&text, importComment([]string{name}, commits, lost), commits, nil); err != nil {
		return err
	}
	p.Blocks = text.String() + "\n"
	return nil
}

// command returns the benchmark command: from the flags, or else by the files of the repository.
func (o *initFlags) command(w *worktree.Tree) (b draft.Bench, err error) {
	found := o.bench != ""
	if found {
		b = draft.Known(o.bench)
	} else if w != nil {
		b, found = draft.Toolchain(func(name string) bool { return fileExists(filepath.Join(w.Top, name)) })
	}
	if !found {
		return b, hint("Say it with -bench, as in -bench 'make bench'.",
			"init: nothing tells which command measures: there is no go.mod, Cargo.toml or pyproject.toml")
	}
	o.Apply(&b)
	if b.Metric == "" {
		return b, hint("Name the number that decides with -metric; benchgraph parse FILE lists those of an output. "+
			"-match reads one that is not listed.", "init: nothing tells which metric of -bench decides")
	}
	return b, nil
}
