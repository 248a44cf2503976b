package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
)

type formatFlags struct{ check, diff bool }

func (a *app) format() cli.Command {
	o := &formatFlags{}
	return cli.Command{
		Name: "fmt", Args: "[FILE...]", Max: -1, Summary: "format the files",
		Long: "Without FILE, the root file and all that it includes. The names of the files that change are " +
			"printed.\nWith -check, the exit code is 1 when one would change.",
		Flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&o.check, "check", false, "change nothing; fail when a file is not in canonical layout")
			fs.BoolVar(&o.diff, "diff", false, "change nothing; print the differences")
		},
		Run: func(_ context.Context, args []string) error { return a.runFormat(o, args) },
	}
}

func (a *app) runFormat(o *formatFlags, names []string) error {
	if len(names) == 0 {
		var err error
		if names, err = a.projectFiles(); err != nil {
			return err
		}
	}
	changed := 0
	for _, name := range names {
		differs, err := a.formatFile(o, name)
		if err != nil {
			return err
		}
		if differs {
			changed++
		}
	}
	if o.check && changed > 0 {
		return hint("Run benchgraph fmt.", "not in canonical layout: %s", view.Count(changed, "file"))
	}
	return nil
}

// projectFiles returns the project's files in native syntax, even if they have mistakes.
func (a *app) projectFiles() ([]string, error) {
	p, err := a.place()
	if err != nil {
		return nil, err
	}
	options, err := a.options(p, nil)
	if err != nil {
		return nil, err
	}
	_, files, diags := hclspec.Load(options)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(p.dir, filepath.FromSlash(name))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && strings.HasSuffix(name, ".hcl") &&
			!slices.Contains(a.varFiles, name) {
			names = append(names, path)
		}
	}
	if len(names) == 0 && diags.HasErrors() {
		return nil, &diagError{diags, files}
	}
	return names, nil
}

// formatFile reports whether the file was not in canonical layout.
func (a *app) formatFile(o *formatFlags, path string) (bool, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("fmt: %w", err)
	}
	if _, diags := hclsyntax.ParseConfig(src, path, hcl.InitialPos); diags.HasErrors() {
		return false, &diagError{diags, map[string]*hcl.File{path: {Bytes: src}}}
	}
	want := hclspec.Format(src)
	if bytes.Equal(src, want) {
		return false, nil
	}
	switch {
	case o.diff:
		err = a.raw(diff.Diff(path, src, path+" (formatted)", want))
	case o.check:
		_, err = fmt.Fprintln(a.stdout, view.Clean(path))
	default:
		if err = fs.Replace(path, want); err == nil {
			_, err = fmt.Fprintln(a.stdout, view.Clean(path))
		}
	}
	return true, err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
