package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/advice"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/packs"
	"github.com/benchgraph/benchgraph/source/history"
)

// pinned returns the options for reading the files, with the pins of the lock file.
func (a *app) pinned(p place) (hclspec.Options, error) {
	lock, err := p.loadLock()
	if err != nil {
		return hclspec.Options{}, err
	}
	return a.options(p, lock)
}

// varPrefix begins the names of environment variables that give values to the file's variables.
const varPrefix = "BENCHGRAPH_VAR_"

// options returns the options for reading the project's files.
func (a *app) options(p place, lock *lockfile.Lock) (hclspec.Options, error) {
	o := hclspec.Options{Dir: p.dir, Home: p.home, File: p.file, Vars: map[string]string{}, VarFiles: a.varFiles,
		EnvVars: map[string]string{}, Lock: lock, Version: version, Packs: packs.FS, History: history.Open(p.history())}
	o.Check = func(spec *hclspec.Spec, files map[string]*hcl.File, faulty bool) hcl.Diagnostics {
		_, _, diags := checkMachines(spec)
		return append(diags, advice.Of(spec, files, faulty)...)
	}
	for _, v := range a.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return o, &cli.UsageError{Message: fmt.Sprintf("-var %q is not NAME=VALUE", v),
				Remedy: "write -var NAME=VALUE"}
		}
		o.Vars[name] = value
	}
	for name, value := range a.env {
		if v, ok := strings.CutPrefix(name, varPrefix); ok {
			o.EnvVars[v] = value
		}
	}
	return o, nil
}

// saveLock replaces the lock file if the lock has changed. It does not overwrite changes that somebody made since the
// file was read.
func (s *session) saveLock(lock *lockfile.Lock) error {
	text := lock.Bytes()
	have, err := s.readLock()
	if err != nil {
		return err
	}
	if bytes.Equal(have, text) || len(have) == 0 && bytes.Equal((&lockfile.Lock{}).Bytes(), text) {
		s.lockText = have
		return nil
	}
	if !bytes.Equal(have, s.lockText) {
		return hint("Nothing in it is overwritten. Apply again: what is finished is kept.",
			"lock file %s: it was edited while the apply ran", s.lock)
	}
	if err := fs.Replace(s.lock, text); err != nil {
		return hint("Make its directory writable for your user, or copy the project.", "lock file: %w", err)
	}
	s.lockText = text
	return nil
}

// loader returns a loader of the files. Its first call returns the result of first, a reading with the lock as it is in
// its file: reading takes most of the time of a large plan.
func (s *session) loader(options hclspec.Options, first func() (*hclspec.Spec, hcl.Diagnostics)) campaign.Loader {
	return func(lock *lockfile.Lock) (*hclspec.Spec, hcl.Diagnostics) {
		if read := first; read != nil {
			first = nil
			return read()
		}
		options.Lock = lock
		spec, files, diags := hclspec.Load(options)
		s.files = files
		return spec, diags
	}
}

// derived returns a loader that reads the files and makes another spec from theirs.
func derived(load campaign.Loader, derive func(*hclspec.Spec) (*hclspec.Spec, error)) campaign.Loader {
	return func(lock *lockfile.Lock) (*hclspec.Spec, hcl.Diagnostics) {
		spec, diags := load(lock)
		if diags.HasErrors() {
			return spec, diags
		}
		own, err := derive(spec)
		if err != nil {
			return nil, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Nothing to measure",
				Detail: err.Error()})
		}
		return own, diags
	}
}
