// Package docs_test makes sure that the documentation says what the code does: its tables are complete, its examples
// are read without a mistake, and its links lead somewhere.
package docs_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

// row is an attribute in a table of language.md: its name or names, and whether they are part of the key.
var row = regexp.MustCompile("^\\| (`[^|]+`) \\|[^|]*\\|[^|]*\\| (yes|no) \\|")

// header begins the table of a block.
var header = regexp.MustCompile("^\\| `([a-z_.]+)` \\| type \\| default \\|")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryAttributeIsDocumented(t *testing.T) {
	told := map[hclspec.AttributeInfo]bool{}
	block := ""
	for line := range strings.Lines(read(t, "language.md")) {
		if h := header.FindStringSubmatch(line); h != nil {
			block = h[1]
		} else if r := row.FindStringSubmatch(line); r != nil {
			for name := range strings.FieldsSeq(r[1]) {
				told[hclspec.AttributeInfo{Block: block, Attribute: strings.Trim(name, "`"),
					InKey: r[2] == "yes"}] = true
			}
		}
	}
	for _, a := range hclspec.Attributes() {
		if !told[a] {
			t.Errorf("language.md lacks %s.%s, in the key: %v", a.Block, a.Attribute, a.InKey)
		}
		delete(told, a)
	}
	for a := range told {
		t.Errorf("language.md has %s.%s, in the key: %v, which the language has not", a.Block, a.Attribute, a.InKey)
	}
}

func TestEveryFunctionIsDocumented(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "language.md"), "\n## Functions\n")
	text, _, _ = strings.Cut(text, "\n## ")
	told, functions := map[string]bool{}, hclspec.Functions()
	for _, name := range regexp.MustCompile("`([a-z0-9_]+)[`(]").FindAllStringSubmatch(text, -1) {
		told[name[1]] = true
		if functions[name[1]] == nil {
			t.Errorf("language.md has %s, which is no function", name[1])
		}
	}
	for name := range functions {
		if !told[name] {
			t.Errorf("language.md lacks the function %s", name)
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```hcl\n(.*?)^```$")

// TestExamplesAreValid reads the examples of a page as one project.
func TestExamplesAreValid(t *testing.T) {
	for page, files := range map[string]map[string]string{
		"language.md": {
			"commits.csv": "commit,parent,suite\n77e01b2,77e01b2^,decode\n", "more/a.hcl": "", "texts/a.txt": "a\n",
			"tools/count.py": "", "patches/4f2a91c.diff": "not read\n", "machines/h100x8.json": "{}",
			"docker/Dockerfile": "", "go.sum": "",
		},
		"../README.md": {},
		"ci.md":        {},
	} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			var source strings.Builder
			for i, example := range fence.FindAllStringSubmatch(read(t, page), -1) {
				if formatted := string(hclspec.Format([]byte(example[1]))); formatted != example[1] {
					t.Errorf("example %d is not in canonical layout:\n%s", i+1, formatted)
				}
				fmt.Fprintln(&source, example[1])
			}
			if source.Len() == 0 {
				t.Fatal("no examples")
			}
			dir := t.TempDir()
			files["benchmarks.hcl"] = source.String()
			for name, text := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Version: "0.1.0",
				EnvVars: map[string]string{"head": "4f2a91c", "base": "4f2a91c^"}})
			for _, d := range diags {
				if d.Summary != "Executor not used" { // which the page says of executor blocks
					t.Error(d)
				}
			}
		})
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	path    = regexp.MustCompile("`([a-z]+/[a-z0-9_./-]*)`")
)

// anchor is what a heading is called in links.
func anchor(text string) string {
	text = strings.ToLower(strings.ReplaceAll(text, " ", "-"))
	return regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(text, "")
}

func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../*.md", "*.md", "adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, l := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			file, fragment, _ := strings.Cut(l[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, l[1])
				continue
			}
			if fragment != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(read(t, target), -1),
				func(h []string) bool {
					return anchor(h[1]) == fragment
				}) {
				t.Errorf("%s: %s: no such heading", page, l[1])
			}
		}
	}
}

// Files and directories of the repository that the pages name must be there.
func TestPathsAreThere(t *testing.T) {
	for _, page := range pages(t) {
		for _, p := range path.FindAllStringSubmatch(read(t, page), -1) {
			top, _, _ := strings.Cut(p[1], "/")
			if info, err := os.Stat(filepath.Join("..", top)); err != nil || !info.IsDir() || top == "bin" {
				continue // the path of something else, or of what is built
			}
			if _, err := os.Stat(filepath.Join("..", p[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, p[1])
			}
		}
	}
}

// Every module that the code imports has its line in dependencies.md, and no other has.
func TestDependenciesAreDocumented(t *testing.T) {
	var modules []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(read(t, "dependencies.md"),
		-1) {
		modules = append(modules, m[1])
	}
	used := map[string]bool{"honnef.co/go/tools": true, "gotest.tools/gotestsum": true} // run by make
	for name, imports := range importsOf(t) {
		for _, imported := range imports {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(imported, "github.com/benchgraph/benchgraph") {
				continue
			}
			i := slices.IndexFunc(modules, func(m string) bool {
				return imported == m || strings.HasPrefix(imported, m+"/")
			})
			if i < 0 {
				t.Errorf("%s imports %s, which is not in dependencies.md", name, imported)
				continue
			}
			used[modules[i]] = true
		}
	}
	for _, m := range modules {
		if !used[m] {
			t.Errorf("dependencies.md has %s, which nothing imports", m)
		}
	}
}

// importsOf lists what each file of the module imports, its tests included.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && (d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			all[name] = append(all[name], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
