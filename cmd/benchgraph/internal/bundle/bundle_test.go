package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// entry is one member of an archive that was made by hand.
type entry struct {
	name, text string
	kind       byte
	link       string
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: 0o644}
		if e.kind == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.text))
		}
		err := w.WriteHeader(h)
		if err == nil && e.kind == 0 {
			_, err = io.WriteString(w, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Whatever files go into a bundle, the bundle has the same bytes in whichever order they were given, and unpacking
// returns the same files.
func TestABundleUnpacksToItsFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.StringMatching(`[a-r][a-z0-9 äß"'$.]{0,20}(/[a-z0-9]{1,120}){0,3}`).Filter(Fits)
		names := rapid.SliceOfDistinct(paths,
			func(s string) string {
				s, _, _ = strings.Cut(s, "/")
				return s
			}).Draw(t, "names")
		want := map[string]string{}
		var files []File
		for _, name := range names {
			want[name] = string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "content"))
			files = append(files, Text(name, []byte(want[name])))
		}
		var one, other bytes.Buffer
		if err := Write(&one, files, Predicate{File: "benchmarks.hcl"}); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(files)
		if err := Write(&other, files, Predicate{File: "benchmarks.hcl"}); err != nil ||
			!bytes.Equal(one.Bytes(), other.Bytes()) {
			t.Fatalf("another order, another bundle (%v)", err)
		}
		dir, err := os.MkdirTemp("", "bundle")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c, err := Unpack(&one, dir, 1<<20)
		if err != nil || len(c.Differences) > 0 || c.Statement.Predicate.File != "benchmarks.hcl" {
			t.Fatalf("%v, %+v", err, c)
		}
		if got := slices.Sorted(maps.Keys(c.Files)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%q", got)
		}
		for name, text := range want {
			if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil ||
				string(got) != text {
				t.Fatalf("%q: %q, %v", name, got, err)
			}
		}
	})
}

func TestHostileBundles(t *testing.T) {
	statement := entry{name: StatementFile, text: "{}"}
	for _, test := range []struct {
		name, want string
		bundle     []byte
	}{
		{"a path that climbs out", "no name of a file", archive(t, entry{name: "../x"}, statement)},
		{"a path that climbs out later", "no name of a file", archive(t, entry{name: "a/../../x"}, statement)},
		{"an absolute path", "no name of a file", archive(t, entry{name: "/tmp/x"}, statement)},
		{"a path that is not in its shortest form", "no name of a file", archive(t, entry{name: "a//b"}, statement)},
		{"a terminal sequence in a name", "no name of a file", archive(t, entry{name: "a\x1b[2J"}, statement)},
		{"a symbolic link", "no regular file", archive(t, entry{name: "a", kind: tar.TypeSymlink, link: "/etc"},
			entry{name: "a/passwd"}, statement)},
		{"a hard link", "no regular file", archive(t, entry{name: "a", kind: tar.TypeLink, link: "/etc/passwd"},
			statement)},
		{"a device", "no regular file", archive(t, entry{name: "a", kind: tar.TypeBlock}, statement)},
		{"a pipe", "no regular file", archive(t, entry{name: "a", kind: tar.TypeFifo}, statement)},
		{"a directory", "no regular file", archive(t, entry{name: "a", kind: tar.TypeDir}, statement)},
		{"a file twice", "exists", archive(t, entry{name: "a"}, entry{name: "a"}, statement)},
		{"a file below a file", "file exists", archive(t, entry{name: "a"}, entry{name: "a/b"}, statement)},
		{"too large", "more than 100 bytes", archive(t, entry{name: "a", text: strings.Repeat("x", 60)},
			entry{name: "b", text: strings.Repeat("x", 60)}, statement)},
		{"no statement", "it has no statement.json", archive(t, entry{name: "a"})},
		{"two statements", "there are two", archive(t, statement, statement)},
		{"a statement that is none", "statement.json", archive(t, entry{name: StatementFile, text: "["})},
		{"cut off", "damaged", archive(t, entry{name: "a", text: strings.Repeat("abc", 20)}, statement)[:40]},
		{"something behind it", "behind its end", append(archive(t, statement), 0)},
		{"another one behind it", "behind its end", append(archive(t, statement), archive(t, statement)...)},
		{"no archive", "no gzip", []byte("hello")},
		{"nothing", "no gzip", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			above := t.TempDir()
			dir := filepath.Join(above, "in", "it")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := Unpack(bytes.NewReader(test.bundle), dir, 100); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			nothingOutside(t, above)
		})
	}
}

// nothingOutside makes sure that there are only regular files below in/it, and nothing beside it.
func nothingOutside(t testing.TB, above string) {
	t.Helper()
	err := filepath.WalkDir(above, func(name string, d fs.DirEntry, err error) error {
		if inside := strings.HasPrefix(name, filepath.Join(above, "in", "it")+"/"); err == nil && !d.IsDir() &&
			(!inside || !d.Type().IsRegular()) {
			err = fmt.Errorf("%s was written", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDifferences(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, []File{Text("a", []byte("1")), Text("b", []byte("2"))}, Predicate{}); err != nil {
		t.Fatal(err)
	}
	statement := func() string {
		dir := t.TempDir()
		if _, err := Unpack(bytes.NewReader(b.Bytes()), dir, 100); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(z)
		for {
			h, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if h.Name == StatementFile {
				text, _ := io.ReadAll(r)
				return string(text)
			}
		}
	}()
	for _, test := range []struct {
		want    string
		entries []entry
	}{
		{`"a" has the SHA-256`, []entry{{name: "a", text: "2"}, {name: "b", text: "2"}}},
		{`"b" is missing`, []entry{{name: "a", text: "1"}}},
		{`"c" is not in statement.json`, []entry{{name: "a", text: "1"}, {name: "b", text: "2"}, {name: "c"}}},
	} {
		c, err := Unpack(bytes.NewReader(archive(t, append(test.entries,
			entry{name: StatementFile, text: statement})...)), t.TempDir(), 100)
		if err != nil || len(c.Differences) != 1 || !strings.Contains(c.Differences[0], test.want) {
			t.Errorf("%v, %+v, want %q", err, c, test.want)
		}
	}
	c, err := Unpack(bytes.NewReader(archive(t, entry{name: StatementFile,
		text: strings.Replace(statement, "bundle/v1", "other/v1", 1)})), t.TempDir(), 100)
	if err != nil || len(c.Differences) != 3 || !strings.Contains(c.Differences[0], "other/v1") {
		t.Errorf("%v, %+v", err, c)
	}
}

func TestNamesThatDoNotFit(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/", "/a", "a/./b", `a\b`, "a\n", "\xff", StatementFile, "x",
		strings.Repeat("a", 5000)} {
		if err := Write(io.Discard, []File{Text(name, nil)}, Predicate{}); err == nil {
			t.Errorf("%.40q went into a bundle", name)
		}
	}
	if err := Write(io.Discard, []File{Text("a", nil), Text("a", nil)}, Predicate{}); err == nil {
		t.Error("a file went into a bundle twice")
	}
	short := Text("a", []byte("abc"))
	short.Size = 5
	if err := Write(io.Discard, []File{short}, Predicate{}); err == nil {
		t.Error("a file that has become shorter went into a bundle")
	}
}

func FuzzUnpack(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, []File{Text("a/b", []byte("1")), Text("b", nil)}, Predicate{}); err != nil {
		f.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Fuzz(func(t *testing.T, plain []byte) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(plain)
		_ = z.Close()
		above := t.TempDir()
		dir := filepath.Join(above, "in", "it")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		fuzzing.Frugal(t, len(plain), func() { _, _ = Unpack(&b, dir, 1<<20) })
		nothingOutside(t, above)
	})
}

// The report of a stranger may have one row very often. The names of the rows stay short.
func TestRowsOfOneName(t *testing.T) {
	row := `{"compare": "all", "metric": "items", "outcome": "win"}`
	all, err := rowsOf([]byte(`{"comparisons": [` + strings.Repeat(row+",", 999) + row + `]}`))
	if err != nil || len(all.rows) != 1000 || len(all.ids[999]) > 100 {
		t.Errorf("%d rows, the last is %.200q, %v", len(all.rows), all.ids[len(all.ids)-1], err)
	}
}
