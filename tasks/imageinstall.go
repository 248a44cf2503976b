package tasks

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/docker"
	"github.com/benchgraph/benchgraph/internal/overlay"
	"github.com/benchgraph/benchgraph/internal/shell"
)

// python is where an image keeps its packages.
type python struct {
	purelib, platlib, scripts, data, headers string
	pip                                      bool
}

// findPython asks the Python that pip would install for; without one it looks where packages usually are. The last line
// that it prints for a name counts.
const findPython = `
for d in /usr/lib/python3*/site-packages /usr/lib/python3/dist-packages /opt/conda/lib/python3*/site-packages /usr/local/lib/python3*/site-packages /usr/local/lib/python3*/dist-packages; do
	if [ -d "$d" ]; then echo "purelib=$d"; echo "platlib=$d"; fi
done
if command -v python3 >/dev/null; then
	python3 -c '
import sysconfig
for name, value in sysconfig.get_paths().items(): print(name + "=" + value)'
	if python3 -m pip --version >/dev/null 2>&1; then echo pip=yes; fi
fi
`

// python finds out where the image as it is so far keeps its packages.
func (m *making) python(ctx context.Context) (python, error) {
	text, err := m.look(ctx, "build", []string{"sh", "-c", findPython}, nil, nil)
	if err != nil {
		return python{}, err
	}
	var found python
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "purelib":
			found.purelib = value
		case "platlib":
			found.platlib = value
		case "scripts":
			found.scripts = value
		case "data":
			found.data = value
		case "include":
			found.headers = value
		case "pip":
			found.pip = true
		}
	}
	if !path.IsAbs(found.purelib) || !path.IsAbs(found.platlib) {
		return found, &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Rule: "no_site", Stage: "build",
			Message: "the image has no directory of Python packages, and $SITE or install needs one", Remedy: "begin with an image that has python3"}}
	}
	return found, nil
}

// site is the directory in which the image's Python finds packages.
func (m *making) site(ctx context.Context) (string, error) {
	if site := m.at.Labels[labelSite]; site != "" {
		return site, nil
	}
	if site, ok := m.p.sites.Load(m.at.ID); ok {
		return site.(string), nil
	}
	found, err := m.python(ctx)
	if err != nil {
		return "", err
	}
	m.p.sites.Store(m.at.ID, found.purelib)
	return found.purelib, nil
}

// wheelIn is a wheel among the inputs of an image.
type wheelIn struct {
	cache.File
	host   string // path on this machine
	inside string // path in the container that installs it
	mount  executor.Mount
}

// wheels are the wheels among what is to be installed, in the order of the file.
func (m *making) wheels() ([]wheelIn, error) {
	var all []wheelIn
	for _, a := range m.t.spec.Install {
		in, found := m.t.refs.Input(m.env, a), false
		inside := m.t.refs.Inside(a)
		for _, f := range in.Files {
			if path.Ext(f.Path) != ".whl" {
				continue
			}
			found = true
			all = append(all, wheelIn{File: f, host: filepath.Join(in.Dir, filepath.FromSlash(f.Path)), inside: inside + "/" + f.Path, mount: executor.Mount{Host: in.Dir, Inside: inside}})
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
	return &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Rule: "no_wheel", Stage: "build",
		Message: fmt.Sprintf("%s is to be installed and made no *.whl, but %s", a, strings.Join(made, ", ")), Remedy: "let it make a wheel, or leave it out of install"}}
}

// install puts the wheels into the image, and proves that they are in it.
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
	return m.step(ctx, "install", describe, func(ctx context.Context, labels map[string]string) (docker.Image, error) {
		m.progress("install")
		py, err := m.python(ctx)
		if err != nil {
			return docker.Image{}, err
		}
		labels[labelSite] = py.purelib
		opened, err := openWheels(wheels)
		if err != nil {
			return docker.Image{}, err
		}
		defer closeWheels(opened)
		proof := func(ctx context.Context, container string, labels map[string]string) error {
			return m.proveAll(ctx, container, opened, py, labels)
		}
		if !py.pip {
			m.say("the image has no pip: unpacking\n")
			return m.blank(ctx, unpacked(opened, py), proof, labels)
		}
		c := changing{stage: "build", argv: []string{"sh", "-euc", pip + "install --no-index --no-deps --force-reinstall --no-cache-dir \"$@\"", "sh"}, proof: proof}
		for _, w := range wheels {
			c.argv = append(c.argv, w.inside)
			if !slices.Contains(c.mounts, w.mount) {
				c.mounts = append(c.mounts, w.mount)
			}
		}
		return m.change(ctx, c, labels)
	})
}

// pip is how pip is called: for the image's own Python, whose packages are meant to be changed.
const pip = "PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 exec python3 -m pip "

func openWheels(wheels []wheelIn) ([]*overlay.Wheel, error) {
	var opened []*overlay.Wheel
	for _, w := range wheels {
		one, err := overlay.OpenWheel(w.host)
		if err != nil {
			closeWheels(opened)
			return nil, &engine.Failure{Err: err, Failure: cache.Failure{Class: cache.Permanent, Rule: "bad_wheel", Stage: "build",
				Message: err.Error(), Remedy: "build it anew, with a tool that writes its RECORD last"}}
		}
		opened = append(opened, one)
	}
	return opened, nil
}

func closeWheels(wheels []*overlay.Wheel) {
	for _, w := range wheels {
		_ = w.Close() // it was only read
	}
}

// place is where a file of a wheel goes in an image; empty: that is not known, as of what an installer rewrites.
func (py python) place(w *overlay.Wheel, f overlay.WheelFile) string {
	lib := py.platlib
	if w.Pure {
		lib = py.purelib
	}
	dir := ""
	switch f.Scheme {
	case "lib":
		dir = lib
	case "purelib":
		dir = py.purelib
	case "platlib":
		dir = py.platlib
	case "data":
		dir = py.data
	}
	if dir == "" {
		return ""
	}
	return path.Join(dir, f.Path)
}

// unpacked is a tar of what the wheels hold, laid out as an installer would, without the programs that it would make.
func unpacked(wheels []*overlay.Wheel, py python) io.Reader {
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		err := writeWheels(out, wheels, py)
		if err == nil {
			err = out.Close()
		}
		w.CloseWithError(err)
	}()
	return r
}

func writeWheels(out *tar.Writer, wheels []*overlay.Wheel, py python) error {
	for _, w := range wheels {
		for _, f := range w.Files {
			to := py.place(w, f)
			if f.Scheme == "scripts" && py.scripts != "" {
				to = path.Join(py.scripts, f.Path)
			}
			if to == "" {
				continue
			}
			mode := int64(0o644)
			if f.Executable || f.Scheme == "scripts" {
				mode = 0o755
			}
			if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(to, "/"), Mode: mode, Size: f.Size}); err != nil {
				return err
			}
			r, err := f.Open()
			if err != nil {
				return err
			}
			_, err = io.Copy(out, r)
			if err = errors.Join(err, r.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// proveAll holds what a container has against the wheels, read from outside, and notes what is installed.
func (m *making) proveAll(ctx context.Context, container string, wheels []*overlay.Wheel, py python, labels map[string]string) error {
	packages, err := m.packages()
	if err != nil {
		return err
	}
	for _, w := range wheels {
		p, err := m.prove(ctx, container, w, py)
		if err != nil {
			return err
		}
		packages = slices.DeleteFunc(packages, func(other shell.Package) bool { return overlay.NormalName(other.Name) == overlay.NormalName(p.Name) })
		packages = append(packages, p)
		m.say("proven: %s %s, %d files as in its RECORD\n", w.Name, w.Version, len(w.Files))
	}
	text, err := json.Marshal(packages)
	labels[labelPackages] = string(text)
	return err
}

// prove reads every file of a wheel back from a container.
func (m *making) prove(ctx context.Context, container string, w *overlay.Wheel, py python) (shell.Package, error) {
	want, dirs := map[string]overlay.WheelFile{}, map[string]bool{}
	info := ""
	for _, f := range w.Files {
		at := py.place(w, f)
		if at == "" {
			continue
		}
		if err := m.lost(at); err != nil {
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
	for _, dir := range sortedKeys(dirs) {
		err := m.p.Engine.CopyFrom(ctx, container, dir, func(r io.Reader) error { return digests(r, path.Dir(dir), want, found) })
		if docker.IsNotFound(err) {
			return shell.Package{}, installMismatch(w, dir+" is not there")
		}
		if err != nil {
			return shell.Package{}, err
		}
	}
	record := info + "/RECORD"
	for _, at := range sortedKeys(want) {
		switch got, there := found[at]; {
		case !there:
			return shell.Package{}, installMismatch(w, at+" is not there")
		case got != want[at].SHA256 && at != record: // an installer adds rows to it
			return shell.Package{}, installMismatch(w, at+" is not the wheel's")
		}
	}
	return shell.Package{Name: w.Name, Version: w.Version, Info: info, Record: found[record]}, nil
}

// digests adds the digests of those regular files in a tar that are wanted, by their names, which are relative to dir in the
// tar. Of a file of another size than is wanted none is taken: it says of itself how large it is, which may be more than
// anybody can read. An installer may have added to a RECORD.
func digests(r io.Reader, dir string, want map[string]overlay.WheelFile, found map[string]string) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at := path.Join(dir, h.Name)
		f, wanted := want[at]
		if !wanted || h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		if h.Size != f.Size && (path.Base(at) != "RECORD" || h.Size > mostRecord) {
			found[at] = "of another size"
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			return err
		}
		found[at] = hex.EncodeToString(sum.Sum(nil))
	}
}

// mostRecord is how many bytes a RECORD may have: that of the largest packages have some megabytes.
const mostRecord = 64 << 20

func installMismatch(w *overlay.Wheel, what string) error {
	return &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Rule: "install_mismatch", Stage: "build",
		Message: fmt.Sprintf("what is installed is not %s %s: %s", w.Name, w.Version, what),
		Remedy:  "look into the log for what the installer did; the image may have a pip of its own that changes what it installs"}}
}
