package wheel

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"testing"
)

func TestSchemesOfAWheel(t *testing.T) {
	path := wheelFile(t, wheelOf(t, map[string]string{
		"pkg/__init__.py": "one", "pkg/fast.so": "code", "single.py": "two", "pkg-1.0.data/scripts/run": "#!python",
		"pkg-1.0.data/purelib/more.py": "three",
	}))
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.Name != "pkg" || w.Version != "1.0" || w.Info != "pkg-1.0.dist-info" || w.Pure {
		t.Errorf("%+v", w)
	}
	places := map[string]string{}
	for _, f := range w.Files {
		places[f.Name] = f.Scheme + " " + f.Path
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		if sum := sha256.Sum256(text); f.SHA256 != hex.EncodeToString(sum[:]) || f.Size != int64(len(text)) {
			t.Errorf("%s: %+v", f.Name, f)
		}
	}
	for name, want := range map[string]string{
		"pkg/fast.so": "lib pkg/fast.so", "pkg-1.0.data/scripts/run": "scripts run",
		"pkg-1.0.data/purelib/more.py": "purelib more.py",
		"pkg-1.0.dist-info/RECORD":     "lib pkg-1.0.dist-info/RECORD",
	} {
		if places[name] != want {
			t.Errorf("%s goes to %q, want %q", name, places[name], want)
		}
	}
}

func wheelFile(t *testing.T, content string) string {
	t.Helper()
	return tree(t, map[string]string{"pkg-1.0-py3-none-any.whl": content}) + "/pkg-1.0-py3-none-any.whl"
}

// A wheel that is not what its RECORD says is refused before anything of it is installed.
func TestAnInconsistentWheelIsRefused(t *testing.T) {
	good := wheelOf(t, map[string]string{"pkg/a.py": "a"})
	for name, tt := range map[string]struct {
		change func(files map[string]string)
		want   string
	}{
		"a file was changed": {func(f map[string]string) { f["pkg/a.py"] = "b" }, "the hash is another one"},
		"a file was added":   {func(f map[string]string) { f["pkg/b.py"] = "b" }, "does not list it"},
		"a file is missing": {func(f map[string]string) {
			delete(f, "pkg/a.py")
		}, `lists "pkg/a.py", which is not in it`},
		"it is another package": {func(f map[string]string) {
			f["pkg-1.0.dist-info/METADATA"] = "Name: other\nVersion: 1.0\n"
		}, "says that it is other 1.0"},
		"it has no version": {func(f map[string]string) {
			f["pkg-1.0.dist-info/METADATA"] = "Name: pkg\n"
		}, "no version"},
		"a weak hash": {func(f map[string]string) {
			f["pkg-1.0.dist-info/RECORD"] = strings.ReplaceAll(f["pkg-1.0.dist-info/RECORD"], "sha256", "md5")
		}, "no hash of it that counts"},
		"a name that leads out": {func(f map[string]string) { f["../a.py"] = "a" }, "not a relative path"},
		"it does not say its kind": {func(f map[string]string) {
			delete(f, "pkg-1.0.dist-info/WHEEL")
		}, "no pkg-1.0.dist-info/WHEEL"},
	} {
		t.Run(name, func(t *testing.T) {
			files := unpackAll(t, good)
			tt.change(files)
			w, err := Open(wheelFile(t, zipped(t, files)))
			if err == nil {
				w.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func unpackAll(t *testing.T, wheel string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		files[f.Name] = string(text)
	}
	return files
}

func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, text)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
