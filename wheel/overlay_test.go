package wheel

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// tree makes a directory: "x:name" is executable, "l:name" a link.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		kind, rest, ok := strings.Cut(name, ":")
		if !ok {
			kind, rest = "", name
		}
		path := filepath.Join(dir, rest)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case kind == "l":
			err = os.Symlink(content, path)
		case kind == "x":
			err = os.WriteFile(path, []byte(content), 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents is what tree was given.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			got["l:"+rel], err = os.Readlink(path)
			return err
		}
		if info.Mode()&0o100 != 0 {
			rel = "x:" + rel
		}
		data, err := os.ReadFile(path)
		got[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// wheelOf packs a wheel as a build would: with its RECORD, and with the time of day in it.
func wheelOf(t testing.TB, files map[string]string) string {
	t.Helper()
	const info = "pkg-1.0.dist-info/"
	all := map[string]string{info + "METADATA": "Name: pkg\nVersion: 1.0\n", info + "WHEEL": "Wheel-Version: 1.0\n"}
	for name, content := range files {
		all[name] = content
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var record strings.Builder
	for name, content := range all {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, content)
		r := rowOf(name, []byte(content))
		fmt.Fprintf(&record, "%s,%s,%s\n", r.name, r.hash, r.size)
	}
	w, err := z.Create(info + "RECORD")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, record.String()+info+"RECORD,,\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// unpack reads a wheel and checks its RECORD: a row with hash and size for every entry, and no other.
func unpack(t testing.TB, path string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		files[f.Name] = string(data)
	}
	const record = "pkg-1.0.dist-info/RECORD"
	rows, err := csv.NewReader(strings.NewReader(files[record])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(files) {
		t.Errorf("%d rows for %d files", len(rows), len(files))
	}
	for _, r := range rows {
		sum := sha256.Sum256([]byte(files[r[0]]))
		want := []string{r[0], "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), fmt.Sprint(len(files[r[0]]))}
		if r[0] == record {
			want = []string{record, "", ""}
		}
		if !slices.Equal(r, want) {
			t.Errorf("row %v, want %v", r, want)
		}
	}
	delete(files, record)
	return files
}

func TestPlainFilesAreLaidWhereTheyLie(t *testing.T) {
	built := tree(t, map[string]string{"x:bin/prog": "compiled", "lib/a.py": "old", "lib/stale.py": "s",
		"lib/data.txt": "d", "l:bin/p": "prog"})
	source := tree(t, map[string]string{"lib/a.py": "new", "x:lib/new/b.py": "b", "lib/data.txt": "not matched",
		"main.c": "c", "l:lib/c.py": "a.py"})
	out := filepath.Join(t.TempDir(), "out")
	if err := Apply(built, source, []string{"lib/**/*.py"}, out); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x:bin/prog": "compiled", "lib/a.py": "new", "x:lib/new/b.py": "b", "lib/data.txt": "d",
		"l:bin/p": "prog", "l:lib/c.py": "a.py"}
	if diff := cmp.Diff(want, contents(t, out)); diff != "" {
		t.Error(diff)
	}
	if err := Apply(built, source, nil, out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a full directory: %v", err)
	}
	if err := Apply(built, source, []string{"a[", "b"}, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "malformed") {
		t.Errorf("malformed pattern: %v", err)
	}
}

func TestWheelsAreOverlaidInside(t *testing.T) {
	wheel := wheelOf(t, map[string]string{"pkg/__init__.py": "old", "pkg/stale.py": "s",
		"pkg/_C.abi3.so": strings.Repeat("\x7fELF", 1000), "pkg/v.json": "{}", "helper.py": "h",
		"pkg-1.0.data/scripts/run": "r"})
	for _, prefix := range prefixes {
		t.Run("under "+prefix, func(t *testing.T) {
			built := tree(t, map[string]string{"dist/pkg-1.0-cp38-abi3-linux_x86_64.whl": wheel})
			source := tree(t, map[string]string{
				prefix + "pkg/__init__.py": "new", prefix + "pkg/deep/er.py": "added", prefix +
					"pkg/v.json": "not matched", prefix + "helper.py": "h2",
				"tests/pkg/test.py": "t", "setup.py": "not in the wheel", "examples/pkg/x.py": "nor this",
			})
			out := filepath.Join(t.TempDir(), "out")
			if err := Apply(built, source, []string{"**/*.py"}, out); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(out, "dist/pkg-1.0-cp38-abi3-linux_x86_64.whl")
			want := map[string]string{
				"pkg/__init__.py": "new", "pkg/deep/er.py": "added", "pkg/_C.abi3.so": strings.Repeat("\x7fELF", 1000),
				"pkg/v.json": "{}", "helper.py": "h2",
				"pkg-1.0.data/scripts/run": "r", "pkg-1.0.dist-info/METADATA": "Name: pkg\nVersion: 1.0\n",
				"pkg-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\n",
			}
			if diff := cmp.Diff(want, unpack(t, path)); diff != "" {
				t.Error(diff)
			}
			if got := contents(t, out); len(got) != 1 {
				t.Errorf("beside the wheel: %v", got)
			}
			pythonAccepts(t, path)
		})
	}
}

// pythonAccepts asks the reader that counts.
func pythonAccepts(t *testing.T, path string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("no python3: the wheel is checked by Go alone")
		return
	}
	const check = `
import base64, csv, hashlib, io, sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
names = z.namelist()
assert len(names) == len(set(names))
record = [n for n in names if n.endswith(".dist-info/RECORD")]
assert record == names[-1:], record
rows = list(csv.reader(io.TextIOWrapper(z.open(record[0]), "utf-8")))
assert sorted(r[0] for r in rows) == sorted(names), (rows, names)
for name, digest, size in rows:
    data = z.read(name)
    if name != record[0]:
        assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), name
        assert int(size) == len(data), name
for i in z.infolist():
    assert i.date_time == (1980, 1, 1, 0, 0, 0), i
sys.path.insert(0, sys.argv[1])
`
	if out, err := exec.Command(python, "-c", check, path).CombinedOutput(); err != nil {
		t.Errorf("python: %v\n%s", err, out)
	}
}

func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	files := map[string]string{"pkg/a.py": "a", "pkg/ü.py": "u", "pkg/z.so": "z", "pkg/b.py": "b"}
	source := tree(t, map[string]string{"pkg/a.py": "A", "pkg/ü.py": "U", "pkg/c.py": "C"})
	var first []byte
	for range 3 {
		built := tree(t, map[string]string{"w.whl": wheelOf(t, files)}) // in another order each time
		out := t.TempDir()
		if err := Apply(built, source, []string{"**/*.py"}, out); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(out, "w.whl"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if !bytes.Equal(first, got) {
			t.Error("the bytes differ")
		}
	}
	path := filepath.Join(tree(t, map[string]string{"w.whl": string(first)}), "w.whl")
	if got := unpack(t, path); got["pkg/ü.py"] != "U" {
		t.Errorf("%v", got)
	}
	pythonAccepts(t, path)
}

func TestRecordedGeneratedFilesStay(t *testing.T) {
	patterns := []string{"pkg/**/*.py"}
	before := tree(t, map[string]string{"pkg/a.py": "a", "pkg/deleted.py": "d"})
	after := tree(t, map[string]string{"pkg/a.py": "A"})
	files := map[string]string{"pkg/a.py": "a", "pkg/deleted.py": "d", "pkg/_version.py": "generated"}
	built := tree(t, map[string]string{"w.whl": wheelOf(t, files)})
	plain := tree(t, files)
	for _, dir := range []string{built, plain} {
		if err := Record(before, patterns, dir); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	if err := Apply(built, after, patterns, out); err != nil {
		t.Fatal(err)
	}
	got := unpack(t, filepath.Join(out, "w.whl"))
	if _, there := got["pkg/deleted.py"]; there || got["pkg/_version.py"] != "generated" || got["pkg/a.py"] != "A" {
		t.Errorf("wheel: %v", got)
	}
	if list := contents(t, out); len(list) != 1 {
		t.Errorf("the record is part of the result: %v", list)
	}
	out = t.TempDir()
	if err := Apply(plain, after, patterns, out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"pkg/a.py": "A", "pkg/_version.py": "generated"},
		contents(t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestLinksThatLeadOutAreRefused(t *testing.T) {
	inside := tree(t, map[string]string{"a.py": "a"})
	for name, c := range map[string]struct{ built, source map[string]string }{
		"of the source": {map[string]string{"a.py": "a"}, map[string]string{"l:a.py": "../../../etc/passwd"}},
		"of the result": {map[string]string{"l:lib": "/etc"}, map[string]string{"a.py": "a"}},
		"in a wheel": {map[string]string{"w.whl": wheelOf(t, map[string]string{"pkg/a.py": "a"})},
			map[string]string{"l:pkg/a.py": inside + "/a.py"}},
		"a directory": {map[string]string{"w.whl": wheelOf(t, map[string]string{"pkg/a.py": "a"})},
			map[string]string{"l:pkg/a.py": "."}},
	} {
		if err := Apply(tree(t, c.built), tree(t, c.source), []string{"**/*.py"}, t.TempDir()); err == nil {
			t.Errorf("link %s: accepted", name)
		}
	}
}

// zipOf packs entries as they come, however wrong.
func zipOf(t testing.TB, entries ...*zip.FileHeader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, h := range entries {
		w, err := z.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if h.CompressedSize64 < 100 {
			w.Write(make([]byte, h.CompressedSize64))
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileWheelsAreRefused(t *testing.T) {
	file := func(name string) *zip.FileHeader { return &zip.FileHeader{Name: name} }
	link := file("link")
	link.SetMode(fs.ModeSymlink | 0o777)
	device := file("dev")
	device.SetMode(fs.ModeDevice | 0o666)
	secret := file("secret")
	secret.Flags = 1
	bomb := &zip.FileHeader{Name: "bomb", Method: zip.Deflate, CompressedSize64: 10, UncompressedSize64: 1 << 30}
	huge := &zip.FileHeader{Name: "huge", Method: zip.Deflate, CompressedSize64: 9 << 30, UncompressedSize64: 9 << 30}
	outside := &zip.FileHeader{Name: "more than there is", Method: zip.Deflate, CompressedSize64: 1 << 20,
		UncompressedSize64: 1 << 20}
	for want, data := range map[string][]byte{
		`"../a": the name`:        zipOf(t, file("../a")),
		`"/etc/a": the name`:      zipOf(t, file("/etc/a")),
		`"a/../../b": the name`:   zipOf(t, file("a/../../b")),
		`"a\\b": the name`:        zipOf(t, file(`a\b`)),
		`"a": there twice`:        zipOf(t, file("a"), file("a")),
		"is a file and a dir":     zipOf(t, file("a"), file("a/b")),
		"neither a file nor a":    zipOf(t, link),
		`"dev": neither a`:        zipOf(t, device),
		"encrypted":               zipOf(t, secret),
		"method 12":               zipOf(t, &zip.FileHeader{Name: "bz", Method: 12}),
		"contradict":              zipOf(t, bomb),
		"over 8 GiB":              zipOf(t, huge),
		"overlap":                 zipOf(t, outside),
		"no RECORD":               zipOf(t, file("a")),
		"two RECORDs":             zipOf(t, file("a.dist-info/RECORD"), file("b.dist-info/RECORD")),
		"a signed wheel":          zipOf(t, file("a.dist-info/RECORD.jws")),
		"zip: not a valid zip":    []byte("PK not at all"),
		"w.whl: entry \"../a\": ": zipOf(t, file("../a")),
	} {
		err := Apply(tree(t, map[string]string{"w.whl": string(data)}), tree(t, nil), []string{"**"}, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Overlaying the tree that was built from changes nothing but the packing, and the last overlay decides alone.
func TestOverlaysAreLawful(t *testing.T) {
	names := rapid.SampledFrom([]string{"pkg/a.py", "pkg/b/c.py", "pkg/d.so", "pkg/e.txt", "mod.py", "pkg/b/f.py"})
	files := rapid.MapOfN(names, rapid.String(), 1, 6)
	pattern := []string{"**/*.py"}
	rapid.Check(t, func(rt *rapid.T) {
		first, second := files.Draw(rt, "first"), files.Draw(rt, "second")
		built := tree(t, first)
		over := func(built, source string) string {
			out := t.TempDir()
			if err := Apply(built, source, pattern, out); err != nil {
				rt.Fatal(err)
			}
			return out
		}
		if diff := cmp.Diff(first, contents(t, over(built, tree(t, first)))); diff != "" {
			rt.Fatal(diff)
		}
		once := over(built, tree(t, second))
		twice := over(over(built, tree(t, nil)), tree(t, second))
		if diff := cmp.Diff(contents(t, once), contents(t, twice)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func FuzzWheel(f *testing.F) {
	f.Add([]byte(wheelOf(f, map[string]string{"pkg/a.py": "a"})))
	f.Add(zipOf(f, &zip.FileHeader{Name: "../a"}))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a *archive
		var err error
		fuzzing.Frugal(t, len(data), func() { a, err = readArchive(bytes.NewReader(data), int64(len(data))) })
		if err != nil {
			return
		}
		for _, name := range a.names {
			if !fs.ValidPath(name) {
				t.Fatalf("name %q", name)
			}
		}
		var out bytes.Buffer
		load := func(string) (sourceFile, error) { return sourceFile{data: []byte("x"), perm: 0o644}, nil }
		if err := a.write(&out, map[string]string{"pkg/a.py": "pkg/a.py"}, nil, load); err != nil {
			return // entries that lie about where they are
		}
		again, err := readArchive(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if again.files["pkg/a.py"] == nil {
			t.Fatal("the laid file is missing")
		}
	})
}

// A wheel may say that it has millions of entries, and hold no byte of any.
func TestAWheelOfNothingButNames(t *testing.T) {
	var one bytes.Buffer
	z := zip.NewWriter(&one)
	for i := range 100 {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%05000d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	// The list of entries over and over, and an end that says how many there are.
	data := one.Bytes()
	end := len(data) - 22
	start := int(binary.LittleEndian.Uint32(data[end+16:]))
	const times = 150
	list := bytes.Repeat(data[start:end], times)
	record := bytes.Clone(data[end:])
	binary.LittleEndian.PutUint16(record[8:], 100*times)
	binary.LittleEndian.PutUint16(record[10:], 100*times)
	binary.LittleEndian.PutUint32(record[12:], uint32(len(list)))
	bomb := slices.Concat(data[:start], list, record)
	if _, err := readArchive(bytes.NewReader(bomb), int64(len(bomb))); err == nil ||
		!strings.Contains(err.Error(), "list of entries is over 64 MiB") {
		t.Errorf("%d MiB: %v", len(bomb)>>20, err)
	}
}
