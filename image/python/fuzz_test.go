package python

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/wheel"
)

// layout is the layout of a test image.
var layout = Layout{Purelib: "/lib/pure", Platlib: "/lib/plat", Scripts: "/bin", Data: "/usr"}

// A wheel with arbitrary names and contents and a correct RECORD is refused, or is unpacked only to the directories of
// wheels, where its files prove to be the wheel's.
func FuzzInstall(f *testing.F) {
	f.Add("pkg/a.py\npkg-1.data/scripts/run\npkg-1.data/data/share/x", "root-is-purelib: true", "text")
	f.Add("../a\n/etc/passwd\npkg-1.data/data/../../etc/passwd\npkg-1.data/scripts/..", "", "")
	f.Add("a\\..\\b\npkg-1.data/purelib/a\x00b\npkg-1.data/headers/.", "Root-Is-Purelib:true", "\x00")
	name := filepath.Join(f.TempDir(), "pkg-1-py3-none-any.whl")
	store := fuzzing.Place(f, name)
	f.Fuzz(func(t *testing.T, names, kind, content string) {
		data, ok := listedWheel(names, kind, content)
		if !ok {
			return
		}
		store(data)
		fuzzing.Frugal(t, len(data), func() {
			wheels, err := Open([]string{name})
			if err != nil {
				return
			}
			defer Close(wheels)
			text, err := io.ReadAll(layout.Unpacked(wheels))
			if err != nil {
				t.Fatal(err)
			}
			staysInside(t, text)
			want, found := map[string]wheel.File{}, map[string]string{}
			for _, file := range wheels[0].Files {
				if at := layout.Place(wheels[0], file); at != "" {
					want[at] = file
				}
			}
			if err := Digests(bytes.NewReader(text), "/", want, found); err != nil {
				t.Fatal(err)
			}
			for at, file := range want {
				if found[at] != file.SHA256 {
					t.Fatalf("%s is %q, and the wheel has %s", at, found[at], file.SHA256)
				}
			}
		})
	})
}

// listedWheel packs a wheel with a file for each line of names, and a correct RECORD.
func listedWheel(names, kind, content string) ([]byte, bool) {
	const info = "pkg-1.dist-info/"
	files := map[string]string{info + "METADATA": "Name: pkg\nVersion: 1\n", info + "WHEEL": kind + "\n"}
	for name := range strings.SplitSeq(names, "\n") {
		files[name] = content
	}
	var out, record bytes.Buffer
	z, rows := zip.NewWriter(&out), csv.NewWriter(&record)
	add := func(name, content string) error {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name})
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		return err
	}
	var err error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256([]byte(files[name]))
		err = errors.Join(err, add(name, files[name]), rows.Write([]string{name, "sha256=" +
			base64.RawURLEncoding.EncodeToString(sum[:]), fmt.Sprint(len(files[name]))}))
	}
	rows.Flush()
	err = errors.Join(err, add(info+"RECORD", record.String()), z.Close())
	return out.Bytes(), err == nil
}

// staysInside fails if a tar has an entry other than files in the directories of wheels.
func staysInside(t *testing.T, text []byte) {
	t.Helper()
	places := []string{layout.Purelib, layout.Platlib, layout.Scripts, layout.Data}
	in := tar.NewReader(bytes.NewReader(text))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		inside := slices.ContainsFunc(places, func(dir string) bool {
			return strings.HasPrefix(path.Join("/", h.Name), dir+"/")
		})
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) || !inside {
			t.Fatalf("%q of type %c is unpacked", h.Name, h.Typeflag)
		}
	}
}

// The engine sends a container's files as a tar with arbitrary entries. Only wanted files are read, and no file can
// pass for another one.
func FuzzProof(f *testing.F) {
	want := map[string]wheel.File{
		"/lib/pkg/a.py":             {Size: 4, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("text")))},
		"/lib/pkg.dist-info/RECORD": {Size: 1}, "/etc/x": {Size: 4},
	}
	pack := func(headers ...*tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			h.Typeflag, h.Size, h.Mode = tar.TypeReg, 4, 0o644
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := io.WriteString(w, "text"); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(pack(&tar.Header{Name: "pkg/a.py"}, &tar.Header{Name: "pkg.dist-info/RECORD"}))
	f.Add(pack(&tar.Header{Name: "../etc/x"}, &tar.Header{Name: "/etc/x"},
		&tar.Header{Name: "pkg/../pkg/a.py", PAXRecords: map[string]string{"BG.x": "y"}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		found := map[string]string{}
		fuzzing.Frugal(t, len(data), func() {
			if Digests(bytes.NewReader(data), "/lib", want, found) != nil {
				return
			}
		})
		for at, sum := range found {
			if _, wanted := want[at]; !wanted || at == "/etc/x" {
				t.Fatalf("%s was taken from below /lib", at)
			}
			if sum == want[at].SHA256 && !bytes.Contains(data, []byte("text")) {
				t.Fatalf("%s has passed for another file", at)
			}
		}
		once := map[string]string{}
		if Digests(bytes.NewReader(data), "/lib", want, once) == nil && !maps.Equal(once, found) {
			t.Fatalf("%v, and then %v", found, once)
		}
	})
}

// A file may claim to be larger than anybody can read.
func TestFilesOfTheWrongSizeAreNotRead(t *testing.T) {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a.py",
		Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err := Digests(&b, "/lib", map[string]wheel.File{"/lib/a.py": {Size: 1}}, found)
	if !errors.Is(err, io.ErrUnexpectedEOF) || found["/lib/a.py"] != "of another size" {
		t.Errorf("%v, %v", found, err)
	}
}
