package shell

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// install makes a directory of packages as pip leaves it. It returns the directory and the list of packages as JSON.
func install(t *testing.T, files map[string]string) (site, packages string) {
	t.Helper()
	site = t.TempDir()
	record := "pkg-1.dist-info/RECORD,,\n../../bin/pkg,sha256=x,1\n"
	for name, text := range files {
		sum := sha256.Sum256([]byte(text))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
		write(t, filepath.Join(site, name), text)
	}
	info := filepath.Join(site, "pkg-1.dist-info")
	write(t, filepath.Join(info, "RECORD"), record)
	text, err := json.Marshal([]Package{{Name: "pkg", Version: "1", Info: info,
		Record: fmt.Sprintf("%x", sha256.Sum256([]byte(record)))}})
	if err != nil {
		t.Fatal(err)
	}
	return site, string(text)
}

func TestShadowedPackageIsFound(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	files := map[string]string{"pkg/__init__.py": "one = 1\n", "pkg/deep/a.py": "", "single.py": "two = 2\n",
		"space/a.py": "", "native.abi3.so": "\x7fELF", "pkg.libs/x.so": ""}
	for name, tt := range map[string]struct {
		prepare func(site, work string)
		from    bool // the program begins in the working directory
		path    string
		problem string
	}{
		"nothing is in the way": {from: true},
		"a source tree in the working directory": {
			func(_, work string) {
				write(t, filepath.Join(work, "pkg/__init__.py"), "")
			}, true, "", "pkg is found in $WORK/pkg/__init__.py; expected $SITE/pkg/__init__.py"},
		"a tree that the program does not look at": {func(_, work string) {
			write(t, filepath.Join(work, "pkg/__init__.py"), "")
		}, false, "", ""},
		"a tree in PYTHONPATH": {
			func(_, work string) {
				write(t, filepath.Join(work, "single.py"), "")
			}, false, "$WORK", "single is found in $WORK/single.py"},
		"a package without a file of its own": {
			func(_, work string) {
				write(t, filepath.Join(work, "space/b.py"), "")
			}, true, "", "space is found in $WORK/space, $SITE/space; expected $SITE/space"},
		"a module of Python's in the working directory": {func(_, work string) {
			write(t, filepath.Join(work, "json.py"), "raise SystemExit(7)")
		}, true, "", ""},
		"another file": {func(site, _ string) {
			write(t, filepath.Join(site, "single.py"), "two = 3\n")
		}, true, "", "$SITE/single.py is not the file that was installed"},
		"another installation": {func(site, _ string) {
			write(t, filepath.Join(site, "pkg-1.dist-info/RECORD"), "")
		}, true, "", "is another one than when it was installed"},
		"no installation": {func(site, _ string) {
			os.RemoveAll(filepath.Join(site, "pkg-1.dist-info"))
		}, true, "", "pkg 1 is not there"},
		"a missing module": {func(site, _ string) {
			os.Remove(filepath.Join(site, "native.abi3.so"))
		}, true, "", "native is not found; expected $SITE/native.abi3.so"},
	} {
		t.Run(name, func(t *testing.T) {
			site, packages := install(t, files)
			work := t.TempDir()
			if tt.prepare != nil {
				tt.prepare(site, work)
			}
			real := func(text string) string { return strings.NewReplacer("$WORK", work, "$SITE", site).Replace(text) }
			argv := []string{"-c", proveScript, packages}
			if tt.from {
				argv = append(argv, work)
			}
			cmd := exec.Command("python3", argv...)
			cmd.Dir = work
			cmd.Env = append(os.Environ(), "PYTHONPATH="+real(strings.TrimPrefix(tt.path+":$SITE", ":")),
				"PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var said struct {
				Modules  map[string]string
				Problems []string
			}
			if err := json.Unmarshal(out, &said); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if tt.problem == "" && (len(said.Problems) > 0 || said.Modules["pkg"] != filepath.Join(site,
				"pkg/__init__.py")) ||
				tt.problem != "" && (len(said.Problems) == 0 || !strings.Contains(said.Problems[0], real(tt.problem))) {
				t.Errorf("it says %+v, want %q", said, real(tt.problem))
			}
		})
	}
}

func TestDirectoriesThatPythonSearchesFirst(t *testing.T) {
	text := func(s string) hclspec.Text { return hclspec.Text{{Literal: s}} }
	sh := &Shell{vars: map[string]string{"SRC": InsideWork, "PORT": "80"}}
	for command, want := range map[string]string{
		"python3 benchmarks/serve.py --port $PORT":               InsideWork + "/benchmarks",
		"python3 serve.py":                                       InsideWork,
		"exec /usr/bin/python3.12 -u -X dev -m vllm.entrypoints": InsideWork,
		"FLAG=1 python -c 'import vllm'":                         InsideWork,
		"python3 /opt/x/serve.py && python3 -m vllm":             InsideWork + " /opt/x",
		"python3 $SRC/a/b.py":                                    InsideWork + "/a",
		"vllm serve model --python3":                             "",
		"pythonic run.py":                                        "",
	} {
		got := sh.lookups(hclspec.Command{Shell: text(command)})
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := sh.lookups(hclspec.Command{Argv: []hclspec.Text{text("python3"),
		text("x/y.py")}}); got[0] != InsideWork+"/x" {
		t.Errorf("a list: %q", got)
	}
}
