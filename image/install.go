package image

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image/python"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/wheel"
)

// python returns the places of Python packages in the image so far.
func (m *making) python(ctx context.Context) (python.Layout, error) {
	text, err := m.inspect(ctx, "build", []string{"sh", "-c", python.Find}, nil)
	if err != nil {
		return python.Layout{}, err
	}
	found, ok := python.Parse(text)
	if !ok {
		return found, buildFailure("no_site", "the image has no directory of Python packages, and $SITE or install "+
			"needs one", "begin with an image that has python3")
	}
	return found, nil
}

// site returns the directory in which the image's Python finds packages.
func (m *making) site(ctx context.Context) (string, error) {
	if site := m.at.Labels[labelSite]; site != "" {
		return site, nil
	}
	if site, ok := m.t.sites.Load(m.at.ID); ok {
		return site.(string), nil
	}
	found, err := m.python(ctx)
	if err != nil {
		return "", err
	}
	m.t.sites.Store(m.at.ID, found.Purelib)
	return found.Purelib, nil
}

// wheelIn is a wheel among the inputs of an image.
type wheelIn struct {
	cache.File
	host   string // path on this machine
	inside string // path in the container that installs it
	mount  executor.Mount
}

// wheels returns the wheels in the inputs of install, in the order of the file.
func (m *making) wheels() ([]wheelIn, error) {
	var all []wheelIn
	for _, a := range m.t.Spec.Install {
		in, found := m.t.Refs.Input(m.env, a), false
		inside := m.t.Refs.Inside(a)
		for _, f := range in.Files {
			if path.Ext(f.Path) != ".whl" {
				continue
			}
			found = true
			all = append(all, wheelIn{File: f, host: filepath.Join(in.Dir, filepath.FromSlash(f.Path)), inside: inside +
				"/" + f.Path, mount: executor.Mount{Host: in.Dir, Inside: inside}})
		}
		if !found {
			return nil, noWheel(a, in.Entry)
		}
	}
	return all, nil
}

func noWheel(a hclspec.Address, e cache.Entry) error {
	made := make([]string, 0, 5)
	for _, f := range e.Files[:min(len(e.Files), 5)] {
		made = append(made, f.Path)
	}
	return buildFailure("no_wheel", fmt.Sprintf("%s is in install, but made no *.whl, only %s", a,
		strings.Join(made, ", ")), "let it make a wheel, or leave it out of install")
}

// install installs the wheels into the image, and proves that the image has their files.
func (m *making) install(ctx context.Context) error {
	wheels, err := m.wheels()
	if err != nil || len(wheels) == 0 {
		return err
	}
	describe := func(d *cache.Description) {
		for _, w := range wheels {
			d.Add("wheel", path.Base(w.Path), w.SHA256)
		}
	}
	return m.step(ctx, "install", describe, func(ctx context.Context, labels map[string]string) (container.Image,
		error) {
		m.progress("install")
		py, err := m.python(ctx)
		if err != nil {
			return container.Image{}, err
		}
		labels[labelSite] = py.Purelib
		var names []string
		for _, w := range wheels {
			names = append(names, w.host)
		}
		opened, err := python.Open(names)
		if err != nil {
			return container.Image{}, err
		}
		defer python.Close(opened)
		proof := func(ctx context.Context, name string, labels map[string]string) error {
			return m.proveAll(ctx, name, opened, py, labels)
		}
		if !py.Pip {
			m.say("the image has no pip: unpacking\n")
			m.ran.Unpacked(m.at.ID, names, py.Purelib)
			return m.blank(ctx, py.Unpacked(opened), proof, labels)
		}
		c := changing{stage: "build", argv: []string{"sh", "-euc", pip +
			"install --no-index --no-deps --force-reinstall --no-cache-dir \"$@\"", "sh"}, proof: proof}
		for _, w := range wheels {
			c.argv = append(c.argv, w.inside)
			if !slices.Contains(c.mounts, w.mount) {
				c.mounts = append(c.mounts, w.mount)
			}
		}
		return m.change(ctx, c, labels)
	})
}

// pip calls pip for the image's own Python, whose packages may be changed.
const pip = "PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 " +
	"exec python3 -m pip "

// proveAll compares the files of a container, read from outside, with the wheels, and notes the installed packages.
func (m *making) proveAll(ctx context.Context, name string, wheels []*wheel.Wheel, py python.Layout,
	labels map[string]string) error {
	packages, err := m.packages(m.at.Labels)
	if err != nil {
		return err
	}
	for _, w := range wheels {
		p, err := m.prove(ctx, name, w, py)
		if err != nil {
			return err
		}
		packages = slices.DeleteFunc(packages, func(other shell.Package) bool {
			return wheel.NormalName(other.Name) == wheel.NormalName(p.Name)
		})
		packages = append(packages, p)
		m.say("proven: %s %s, %d files as in its RECORD\n", w.Name, w.Version, len(w.Files))
	}
	text, err := json.Marshal(packages)
	labels[labelPackages] = string(text)
	return err
}

// prove reads every file of a wheel back from a container.
func (m *making) prove(ctx context.Context, name string, w *wheel.Wheel, py python.Layout) (shell.Package, error) {
	want, dirs := map[string]wheel.File{}, map[string]bool{}
	info := ""
	for _, f := range w.Files {
		at := py.Place(w, f)
		if at == "" {
			continue
		}
		if err := m.inVolume(at); err != nil {
			return shell.Package{}, err
		}
		want[at] = f
		top, _, _ := strings.Cut(f.Path, "/")
		dirs[strings.TrimSuffix(at, f.Path)+top] = true
		if f.Name == w.Info+"/RECORD" {
			info = path.Dir(at)
		}
	}
	found := map[string]string{}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		err := m.engine.CopyFrom(ctx, name, dir, func(r io.Reader) error {
			return python.Digests(r, path.Dir(dir), want, found)
		})
		if container.IsNotFound(err) {
			return shell.Package{}, installMismatch(w, dir+" is not there")
		}
		if err != nil {
			return shell.Package{}, err
		}
	}
	record := info + "/RECORD"
	for _, at := range slices.Sorted(maps.Keys(want)) {
		switch got, there := found[at]; {
		case !there:
			return shell.Package{}, installMismatch(w, at+" is not there")
		case got != want[at].SHA256 && at != record: // an installer adds rows to it
			return shell.Package{}, installMismatch(w, at+" is not the wheel's")
		}
	}
	return shell.Package{Name: w.Name, Version: w.Version, Info: info, Record: found[record]}, nil
}

func installMismatch(w *wheel.Wheel, what string) error {
	message := fmt.Sprintf("the installed files are not those of %s %s: %s", w.Name, w.Version, what)
	return buildFailure("install_mismatch", message,
		"look into the log for what the installer did; the image may have a pip of its own that changes what it "+
			"installs")
}
