// Package arch holds the import rules of the architecture as a test that parses the files.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/benchgraph/benchgraph/"

// storeys holds the storey of each package. A package imports packages of lower storeys only. A package below one of
// the table is a part of that package, and stands on the same storey.
var storeys = map[string]int{
	"cmd/benchgraph": 8,
	"campaign":       7,
	"tasks":          6, "report": 6,
	"image": 5, "remote": 5,
	"cmd/benchgraph-kubernetes": 4, "cmd/benchgraph-modal": 4, "findings": 4, "shell": 4, "source": 4, "wheel": 4,
	"executor":  3,
	"container": 2, "engine": 2,
	"cache": 1, "device": 1, "hclspec": 1, "metrics": 1, "packs": 1, "preflight": 1, "stats": 1,
	"failure": 0, "internal/cores": 0, "internal/fs": 0, "internal/fuzzing": 0, "internal/glob": 0,
	"internal/head": 0, "internal/lazyregexp": 0, "internal/nearest": 0, "internal/needtest": 0,
	"internal/printable": 0, "internal/sh": 0, "internal/sshkey": 0, "internal/usage": 0,
}

// rule forbids packages the imports of a list: a path, or with /... all paths below it, too.
type rule struct {
	what    string
	applies func(pkg string) bool
	forbids []string
}

var rules = []rule{
	{"the engine knows no kind, no file format and no tool", in("engine"),
		[]string{module + "hclspec/...", module + "tasks/...", module + "campaign/...", module + "executor/...",
			module + "metrics/...",
			"github.com/hashicorp/hcl/...", "github.com/zclconf/...", "os/exec"}},
	{"the language does nothing but read", in("hclspec"), []string{"os/exec", "net", "net/http/..."}},
	{"reports and parsers know neither engine nor store", in("report", "metrics"),
		[]string{module + "engine/...", module + "cache/..."}},
	{"foreign commands are run by executor, device/gpu and, for credentials, container/login", func(pkg string) bool {
		return notIn("executor", "device/gpu", "container/login")(pkg) && !support(pkg)
	}, []string{"os/exec"}},
	{"the client library of a cloud is in a program of its own",
		notIn("executor/modal/service", "executor/modal/modaltest"),
		[]string{"github.com/modal-labs/...", "google.golang.org/grpc/..."}},
	{"so is that of Kubernetes",
		notIn("executor/kubernetes/cluster", "executor/kubernetes/kubetest"), []string{"k8s.io/..."}},
	{"one file speaks to the container engine's client", func(pkg string) bool {
		return pkg != "container"
	}, []string{"github.com/docker/docker/client"}},
	{"reflection is left to gohcl", notIn(), []string{"reflect"}},
}

func in(roots ...string) func(string) bool {
	return func(pkg string) bool {
		for _, root := range roots {
			if pkg == root || strings.HasPrefix(pkg, root+"/") {
				return true
			}
		}
		return false
	}
}

func notIn(roots ...string) func(string) bool {
	inside := in(roots...)
	return func(pkg string) bool { return !inside(pkg) }
}

// support says whether a package is there for tests alone, as executor/executortest is. It may start what a test needs,
// and read from the environment what the machine has.
func support(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// source is one file of the module.
type source struct {
	pkg  string // directory, slash-separated, relative to the module
	file *ast.File
	name string
}

// set has the places of all files.
var set = token.NewFileSet()

// The files that are tests, and those that are not, are read once for all tests here.
var (
	testFiles  = sync.OnceValues(func() ([]source, error) { return parse(true) })
	otherFiles = sync.OnceValues(func() ([]source, error) { return parse(false) })
)

// sources are the files that are tests, or those that are not.
func sources(t *testing.T, tests bool) []source {
	t.Helper()
	read := otherFiles
	if tests {
		read = testFiles
	}
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d files found: this test looks in the wrong place", len(all))
	}
	return all
}

func parse(tests bool) ([]source, error) {
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") != tests:
			return nil
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		all = append(all, source{filepath.ToSlash(rel), file, name})
		return err
	})
	return all, err
}

// storey finds the storey of a package: its own, or that of the package it is a part of.
func storey(pkg string) (level int, part bool, ok bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if level, ok := storeys[p]; ok {
			return level, p != pkg, true
		}
	}
	return 0, false, false
}

func TestImportsGoDownwards(t *testing.T) {
	for _, s := range sources(t, false) {
		level, _, ok := storey(s.pkg)
		if !ok {
			t.Errorf("%s: the package stands on no storey; add it to the table in this test and to "+
				"docs/architecture.md", s.name)
			continue
		}
		for _, imp := range s.file.Imports {
			target, _ := strconv.Unquote(imp.Path.Value)
			pkg, ours := strings.CutPrefix(target, module)
			if !ours || in(root(s.pkg))(pkg) {
				continue
			}
			if below, _, ok := storey(pkg); !ok || below >= level {
				t.Errorf("%s: %s (storey %d) imports %s (storey %d)", set.Position(imp.Pos()), s.pkg, level, pkg, below)
			}
		}
	}
}

// root is the package that a package is a part of.
func root(pkg string) string {
	for p := pkg; p != "."; p = path.Dir(p) {
		if _, ok := storeys[p]; ok {
			return p
		}
	}
	return pkg
}

func TestForbiddenImports(t *testing.T) {
	for _, s := range sources(t, false) {
		for _, imp := range s.file.Imports {
			target, _ := strconv.Unquote(imp.Path.Value)
			for _, r := range rules {
				for _, forbidden := range r.forbids {
					if r.applies(s.pkg) && matches(forbidden, target) {
						t.Errorf("%s: %s imports %s: %s", set.Position(imp.Pos()), s.pkg, target, r.what)
					}
				}
			}
		}
	}
}

func TestOnlyTestsImportTheirSupport(t *testing.T) {
	for _, s := range sources(t, false) {
		for _, imp := range s.file.Imports {
			target, _ := strconv.Unquote(imp.Path.Value)
			if pkg, ours := strings.CutPrefix(target, module); ours && support(pkg) && !support(s.pkg) {
				t.Errorf("%s: %s imports %s, which is for tests", set.Position(imp.Pos()), s.pkg, pkg)
			}
		}
	}
}

func matches(pattern, target string) bool {
	below, tree := strings.CutSuffix(pattern, "/...")
	return target == below || tree && strings.HasPrefix(target, below+"/")
}

// first is what runs in the place of main in a process of its own.
const first = "executor/internal/first"

// TestNoHiddenState keeps init functions out, and the process's own streams, environment and exit in main.
func TestNoHiddenState(t *testing.T) {
	owned := map[string]bool{"Stdout": true, "Stderr": true, "Stdin": true, "Exit": true, "Getenv": true,
		"LookupEnv": true, "Environ": true, "ExpandEnv": true}
	for _, s := range sources(t, false) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" && s.pkg != first {
					t.Errorf("%s: init function", set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "os" && owned[n.Sel.Name] &&
					path.Dir(s.pkg) != "cmd" && s.pkg != first && !support(s.pkg) {
					t.Errorf("%s: os.%s belongs to a main package", set.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// The container engine's client has one door: the rule above says in which package, this says in how many files.
func TestOneFileImportsTheEnginesClient(t *testing.T) {
	count := 0
	for _, s := range sources(t, false) {
		for _, imp := range s.file.Imports {
			if target, _ := strconv.Unquote(imp.Path.Value); target == "github.com/docker/docker/client" {
				count++
			}
		}
	}
	if count != 1 {
		t.Errorf("%d files import the container engine's client; one may", count)
	}
}

// A fuzz target without a bound finds neither what takes too much memory nor what grows with the square of the input.
func TestEveryFuzzTargetHasABound(t *testing.T) {
	set, targets := token.NewFileSet(), 0
	for _, s := range sources(t, true) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			targets++
			bounded := false
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && (call.Sel.Name == "Frugal" ||
					call.Sel.Name == "Contained") {
					from, ok := call.X.(*ast.Ident)
					bounded = bounded || ok && from.Name == "fuzzing"
				}
				return true
			})
			if !bounded {
				t.Errorf("%s: %s reads without fuzzing.Frugal or fuzzing.Contained", set.Position(f.Pos()), f.Name.Name)
			}
		}
	}
	if targets < 30 {
		t.Errorf("only %d fuzz targets found", targets)
	}
}
