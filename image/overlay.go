package image

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/image/python"
	"github.com/benchgraph/benchgraph/internal/glob"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/wheel"
)

// An overlay replaces files of a package in the image, wherever Python finds the package, for instance in the source
// tree of an editable installation. The package must have been made from one tree (over) and becomes that of another
// (source). Both are verified from outside, file by file, so that a patch is never laid over another revision.

type overlay struct {
	source        engine.Input
	over          string                // address of the tree from which the package was made, for messages
	before, after map[string]cache.File // by path in the tree: files that match the patterns
	tops          map[string]string     // by top-level module: its directory or file in the image
	laid          []string              // paths in the tree, sorted
	removed       []string              // paths in the tree, sorted
	kept          []string              // paths in the tree of unchanged files, sorted
}

// overlay lays the files of the source tree over the package that the image has.
func (m *making) overlay(ctx context.Context) error {
	spec := m.t.Spec.Overlay
	if spec == nil {
		return nil
	}
	o := &overlay{source: m.t.Refs.Input(m.env, spec.Source), over: spec.Over.String()}
	over := m.t.Refs.Input(m.env, spec.Over)
	o.before, o.after = matched(over.Files, spec.Paths), matched(o.source.Files, spec.Paths)
	if len(o.before) == 0 {
		return buildFailure("overlay_mismatch", fmt.Sprintf("no file of %s matches paths", o.over),
			"correct paths: they are relative to the top of the tree")
	}
	if name := differsOutside(over.Files, o.source.Files, spec.Paths); name != "" {
		return buildFailure("overlay_outside", fmt.Sprintf("%s differs between %s and %s, and no pattern of paths "+
			"matches it: the image may have to be built anew", name, o.over, spec.Source),
			"build a wheel and install it; if the installed package does not depend on the file, add it to paths")
	}
	describe := func(d *cache.Description) {
		describeFiles(d, "over", o.before)
		describeFiles(d, "source", o.after)
	}
	return m.step(ctx, "overlay", describe, func(ctx context.Context, labels map[string]string) (container.Image,
		error) {
		m.progress("overlay")
		if err := o.prepare(ctx, m); err != nil {
			return container.Image{}, err
		}
		return o.lay(ctx, m, labels)
	})
}

func describeFiles(d *cache.Description, label string, files map[string]cache.File) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		d.Add(label, name, files[name].SHA256, files[name].Link, strconv.FormatUint(uint64(files[name].Mode), 8))
	}
}

func matched(files []cache.File, patterns []string) map[string]cache.File {
	found := map[string]cache.File{}
	for _, f := range files {
		if glob.Match(patterns, f.Path) {
			found[f.Path] = f
		}
	}
	return found
}

// differsOutside returns a file that differs between the trees and matches no pattern; "" if there is none.
func differsOutside(a, b []cache.File, patterns []string) string {
	others := map[string]cache.File{}
	for _, f := range a {
		others[f.Path] = f
	}
	for _, f := range b {
		if others[f.Path] != f && !glob.Match(patterns, f.Path) {
			return f.Path
		}
		delete(others, f.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if !glob.Match(patterns, name) {
			return name
		}
	}
	return ""
}

// findTops prints where Python finds modules, as NAME=PATH. A package's PATH ends with a slash.
const findTops = `
import os, sys
from importlib.util import find_spec
for name in sys.argv[1:]:
    try:
        spec = find_spec(name)
    except Exception:
        spec = None
    if spec is not None and spec.submodule_search_locations:
        print(name + "=" + os.path.realpath(list(spec.submodule_search_locations)[0]) + "/")
    elif spec is not None and spec.origin and os.path.isabs(spec.origin):
        print(name + "=" + os.path.realpath(spec.origin))
`

// top returns the top-level module to which a file of a tree belongs, and the file's path below the directory with that
// module.
func top(name string) (module, inside string) {
	inside = wheel.InPackage(name)
	module, _, below := strings.Cut(inside, "/")
	if !below {
		module, _ = strings.CutSuffix(module, ".py")
	}
	return module, inside
}

// installedPath returns the path in the image of a file of the tree; "" if no installed module contains the file.
func (o *overlay) installedPath(name string) string {
	module, inside := top(name)
	at := o.tops[module]
	dir, isPackage := strings.CutSuffix(at, "/")
	if isPackage && strings.HasPrefix(inside, module+"/") {
		return path.Join(path.Dir(dir), inside)
	} else if at != "" && !isPackage && path.Base(at) == inside {
		return at
	}
	return ""
}

// prepare finds the installed package, verifies that it was made from over, and decides which files change.
func (o *overlay) prepare(ctx context.Context, m *making) error {
	argv := []string{"python3", "-c", findTops}
	for _, files := range []map[string]cache.File{o.before, o.after} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if module, _ := top(name); !slices.Contains(argv[3:], module) && !strings.ContainsAny(module, ".-") {
				argv = append(argv, module)
			}
		}
	}
	text, err := m.inspect(ctx, "build", argv, nil)
	if err != nil {
		return err
	}
	o.tops = map[string]string{}
	for line := range strings.Lines(text) {
		if name, at, ok := strings.Cut(strings.TrimSpace(line), "="); ok && path.IsAbs(at) {
			o.tops[name] = at
		}
	}
	var found map[string]string
	err = m.inert(ctx, func(box string) error {
		found, err = o.digests(ctx, m, box, o.before)
		return err
	})
	if err != nil {
		return err
	}
	return o.decide(m, found)
}

// digests reads the digests of files of a tree from a container, by path in the container.
func (o *overlay) digests(
	ctx context.Context, m *making, box string, files map[string]cache.File,
) (map[string]string, error) {
	want, found := map[string]wheel.File{}, map[string]string{}
	for name, f := range files {
		if at := o.installedPath(name); at != "" {
			want[at] = wheel.File{Size: f.Size, SHA256: f.SHA256}
		}
	}
	for _, module := range slices.Sorted(maps.Keys(o.tops)) {
		at := path.Clean(o.tops[module])
		err := m.engine.CopyFrom(ctx, box, at, func(r io.Reader) error {
			return python.Digests(r, path.Dir(at), want, found)
		})
		if err != nil && !container.IsNotFound(err) {
			return nil, err
		}
	}
	return found, nil
}

// decide compares the installed files with those of over and decides which ones change. If the image lacks a file of
// over, the package was made without that file, and stays so.
func (o *overlay) decide(m *making, found map[string]string) error {
	var other []string
	has := map[string]bool{} // modules with files in the image
	for _, name := range slices.Sorted(maps.Keys(o.before)) {
		at := o.installedPath(name)
		digest, there := found[at]
		module, _ := top(name)
		after, stays := o.after[name]
		switch {
		case at == "" || !there:
			continue
		case digest != o.before[name].SHA256:
			other = append(other, at)
		case !stays:
			o.removed = append(o.removed, name)
		case after == o.before[name]:
			o.kept = append(o.kept, name)
		default:
			o.laid = append(o.laid, name)
		}
		has[module] = true
	}
	if len(other) > 0 {
		more := ""
		if len(other) > 1 {
			more = fmt.Sprintf(", nor are %d more of %d files", len(other)-1, len(found))
		}
		return buildFailure("overlay_mismatch",
			fmt.Sprintf("%s in the image is not that of %s%s", other[0], o.over, more),
			"over must name the revision that the package in the image was made from")
	}
	maps.DeleteFunc(o.tops, func(module, _ string) bool { return !has[module] })
	if len(o.tops) == 0 {
		return buildFailure("overlay_mismatch", fmt.Sprintf("the image has no file of %s that paths match", o.over),
			"begin with an image in which the package is installed, or correct paths")
	}
	for _, name := range slices.Sorted(maps.Keys(o.after)) {
		if _, was := o.before[name]; !was && o.installedPath(name) != "" {
			o.laid = append(o.laid, name)
		}
	}
	slices.Sort(o.laid)
	for _, name := range o.laid {
		if o.after[name].Link != "" {
			return buildFailure("overlay_link", name+" is a symbolic link, which an overlay cannot contain",
				"build a wheel and install it")
		}
		if err := m.inVolume(o.installedPath(name)); err != nil {
			return err
		}
	}
	return nil
}

// dropStale removes the files marked with -, and compiled Python files of removed or replaced files.
const dropStale = `for change do
	file=${change#?}
	name=${file##*/}
	case $change in -*) rm -f -- "$file" ;; esac
	rm -f -- "${file%/*}/__pycache__/${name%.py}".*.pyc
done`

// lay makes the image with the changed files, and proves that its files are those of the source tree.
func (o *overlay) lay(ctx context.Context, m *making, labels map[string]string) (container.Image, error) {
	files, packages, err := o.records()
	if err != nil {
		return container.Image{}, err
	}
	c := changing{
		stage: "build", argv: []string{"sh", "-euc", dropStale, "sh"},
		says: fmt.Sprintf("lay %d files, remove %d", len(o.laid), len(o.removed)),
	}
	var changes []api.FilesystemChange
	for _, name := range o.removed {
		c.argv = append(c.argv, "-"+o.installedPath(name))
		changes = append(changes, api.FilesystemChange{Path: o.installedPath(name)})
	}
	for _, name := range o.laid {
		content, err := os.ReadFile(filepath.Join(o.source.Dir, filepath.FromSlash(name)))
		if err != nil {
			return container.Image{}, err
		}
		files = append(files, fixedFile{o.installedPath(name), content, o.after[name].Mode&0o111 != 0})
		c.argv = append(c.argv, "+"+o.installedPath(name))
		changes = append(changes, api.FilesystemChange{Path: o.installedPath(name)})
	}
	c.files = tarOf(files)
	c.proof = func(ctx context.Context, box string, labels map[string]string) error {
		if err := o.prove(ctx, m, box); err != nil {
			return err
		}
		if err := m.notePatched(changes, labels); err != nil {
			return err
		}
		return m.listPackages(packages, labels)
	}
	if err := m.nextSecond(ctx); err != nil {
		return container.Image{}, err
	}
	return m.change(ctx, c, labels)
}

// records returns a RECORD for each module, in a directory beside the module, and the package entries for these
// RECORDs. With them, a benchmark does not start if a file of the overlay has changed.
func (o *overlay) records() (files []fixedFile, packages []shell.Package, err error) {
	for _, module := range slices.Sorted(maps.Keys(o.tops)) {
		var text bytes.Buffer
		rows := csv.NewWriter(&text)
		for _, name := range slices.Sorted(slices.Values(append(slices.Clone(o.kept), o.laid...))) {
			in, inside := top(name)
			sum, err := hex.DecodeString(o.after[name].SHA256)
			if in != module || err != nil || len(sum) == 0 {
				continue
			}
			_ = rows.Write([]string{ // Flush returns the error
				inside, "sha256=" + base64.RawURLEncoding.EncodeToString(sum),
				strconv.FormatInt(o.after[name].Size, 10),
			})
		}
		if rows.Flush(); rows.Error() != nil {
			return nil, nil, rows.Error()
		}
		at := path.Clean(o.tops[module])
		if base, _ := strings.CutSuffix(path.Base(at), ".py"); base != module {
			return nil, nil, buildFailure("overlay_mismatch",
				fmt.Sprintf("Python finds %s in %s, a path of another name", module, at),
				"build a wheel and install it")
		}
		info := path.Join(path.Dir(at), ".benchgraph-overlay-"+module)
		files = append(files, fixedFile{to: info + "/RECORD", content: text.Bytes()})
		packages = append(packages, shell.Package{
			Name: module, Version: "overlay", Info: info, Whole: true,
			Record: fmt.Sprintf("%x", sha256.Sum256(text.Bytes())),
		})
	}
	return files, packages, nil
}

// prove reads every file of the source tree back from a container, and verifies that removed files are gone.
func (o *overlay) prove(ctx context.Context, m *making, box string) error {
	want := map[string]cache.File{}
	for _, name := range append(slices.Clone(o.kept), o.laid...) {
		want[name] = o.after[name]
	}
	for _, name := range o.removed {
		want[name] = cache.File{}
	}
	found, err := o.digests(ctx, m, box, want)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got := found[o.installedPath(name)]; got != want[name].SHA256 {
			return buildFailure("install_mismatch",
				fmt.Sprintf("%s is not that of the source tree: its SHA-256 is %s", o.installedPath(name),
					cmp.Or(got, "missing")),
				"see whether the image changes files when it is started")
		}
	}
	m.say("proven: %d files as in the source tree, %d of them laid over, %d removed\n",
		len(o.kept)+len(o.laid), len(o.laid), len(o.removed))
	return nil
}

// listPackages adds packages to the label that lists them, and replaces entries with the same directory.
func (m *making) listPackages(packages []shell.Package, labels map[string]string) error {
	all, err := m.packages(labels)
	if err != nil {
		return err
	}
	for _, p := range packages {
		all = slices.DeleteFunc(all, func(other shell.Package) bool { return other.Info == p.Info })
		all = append(all, p)
	}
	text, err := json.Marshal(all)
	labels[labelPackages] = string(text)
	return err
}
