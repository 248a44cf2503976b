package sample

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesOfChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		candidate, baseline string
		tolerance           float64
		want                string
	}{
		"equal":                {"a 1\nb 2\n", "a 1\nb 2\n", 0, ""},
		"another number":       {"a 1\nb 2.001\n", "a 1\nb 2\n", 0, `check/o.txt, line 2: "2.001" against "2"`},
		"within the tolerance": {"a 1\nb 2.001\n", "a 1\nb 2\n", 0.01, ""},
		"beyond the tolerance": {"b -2.1\n", "b -2\n", 0.01, `line 1: "-2.1" against "-2"`},
		"another text":         {"yes 1\n", "no 1\n", 0.01, `"yes " against "no "`},
		"shorter":              {"1\n", "1\n2\n", 0.01, "the end of the file"},
		"longer":               {"1\n2\n", "1\n", 0.01, "the end of the file"},
		"JSON with exponents":  {`{"score": 9.1e-1}`, `{"score": 0.911}`, 0.01, ""},
		"not a number at all":  {"NaN", "1", 0.5, `"NaN" against "1"`},
		"a very long line": {strings.Repeat("x", 200_000) + "1", strings.Repeat("x", 200_000) + "2", 0.01,
			`"1" against "2"`},
		"words that hold an e":  {"tree 1", "tree 1", 0, ""},
		"different words, same": {"the 1", "tha 1", 0.5, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for member, text := range map[string]string{"one": tt.candidate, "base": tt.baseline} {
				if err := errors.Join(os.MkdirAll(filepath.Join(dir, member, CheckDir), 0o755),
					os.WriteFile(filepath.Join(dir, member, CheckDir, "o.txt"), []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Differ(filepath.Join(dir, "one"), filepath.Join(dir, "base"),
				Same{Pattern: "*.txt", Tolerance: tt.tolerance})
			if err != nil || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
			if _, err := Differ(filepath.Join(dir, "one"), filepath.Join(dir, "base"),
				Same{Pattern: "*.json"}); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("no file matches: %v", err)
			}
		})
	}
}
