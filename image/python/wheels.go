package python

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/wheel"
)

// Open opens wheels by their paths on this machine.
func Open(names []string) ([]*wheel.Wheel, error) {
	var opened []*wheel.Wheel
	for _, name := range names {
		one, err := wheel.Open(name)
		if err != nil {
			Close(opened)
			return nil, &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Permanent, Rule: "bad_wheel",
				Stage:   "build",
				Message: err.Error(), Remedy: "build it anew, with a tool that writes its RECORD last"}}
		}
		opened = append(opened, one)
	}
	return opened, nil
}

// Close closes wheels.
func Close(wheels []*wheel.Wheel) {
	for _, w := range wheels {
		_ = w.Close() // it was only read
	}
}

// Unpacked returns a tar of the wheels' files at the paths of an installation, without the programs that an installer
// would generate.
func (l Layout) Unpacked(wheels []*wheel.Wheel) io.Reader {
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		err := l.write(out, wheels)
		if err == nil {
			err = out.Close()
		}
		w.CloseWithError(err)
	}()
	return r
}

func (l Layout) write(out *tar.Writer, wheels []*wheel.Wheel) error {
	for _, w := range wheels {
		for _, f := range w.Files {
			to := l.Place(w, f)
			if f.Scheme == "scripts" && l.Scripts != "" {
				to = path.Join(l.Scripts, f.Path)
			}
			if to == "" {
				continue
			}
			mode := int64(0o644)
			if f.Executable || f.Scheme == "scripts" {
				mode = 0o755
			}
			if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(to, "/"), Mode: mode,
				Size: f.Size}); err != nil {
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

// Digests adds the digests of the wanted regular files of a tar, by names relative to dir. A file of another size than
// wanted is skipped: the tar states the size, which may be more than anybody can read. Installers may append to a
// RECORD.
func Digests(r io.Reader, dir string, want map[string]wheel.File, found map[string]string) error {
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

// mostRecord is the greatest size of a RECORD in bytes: those of the largest packages have some megabytes.
const mostRecord = 64 << 20
