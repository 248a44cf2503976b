package arch

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/formats.golden anew")

// stored is the format of files that one program writes and another version of it reads. Names are those of Go, after
// the directory of the package.
type stored struct {
	name    string
	version string   // constant that a reader compares; empty: files of all versions must be readable
	types   []string // that are encoded. Types of the module that they contain belong to the format, too
	code    []string // functions and methods that encode by hand; TYPE.* are all methods of a type
}

var formats = []stored{
	// The JSON in a memo is left out: a memo names the program that wrote it, and no other one reads it.
	{"memo of a plan", "campaign/memo.magic", []string{"campaign/memo.memo"},
		[]string{"campaign/memo.memo.encode", "campaign/memo.memo.write", "campaign/memo.writer.*"}},
	{"entry of a store", "cache.metaMagic", []string{"cache.Meta"},
		[]string{"cache.EncodeMeta", "cache.listing", "cache.seal"}},
	{"object of a shared store", "cache/shared.magic", nil, []string{"cache/shared.pack"}},
	{"index of a shared store", "cache/shared/index.indexMagic", []string{"cache/shared/index.Record"},
		[]string{"cache/shared/index.Statement", "cache/shared/index.Record.Line", "cache/shared/index.compress"}},
	{"journal of attempts", "", []string{"cache/journal.record"}, []string{"cache/journal.encodeRecord"}},
	{"record of a trial", "", []string{"findings/sample.Record"}, nil},
}

// declared holds the declarations of the module by name, and the files of types.
type declared struct {
	types     map[string]*ast.TypeSpec
	functions map[string]*ast.FuncDecl
	constants map[string]string
	files     map[string]*source // of types
}

func declarations(t *testing.T) declared {
	t.Helper()
	d := declared{map[string]*ast.TypeSpec{}, map[string]*ast.FuncDecl{}, map[string]string{}, map[string]*source{}}
	all := sources(t, false)
	for i := range all {
		s := &all[i]
		for _, decl := range s.file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				name := decl.Name.Name
				if decl.Recv != nil {
					name = receiver(decl.Recv.List[0].Type) + "." + name
				}
				d.functions[s.pkg+"."+name] = decl
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					d.add(s, spec)
				}
			}
		}
	}
	return d
}

func (d *declared) add(s *source, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		d.types[s.pkg+"."+spec.Name.Name], d.files[s.pkg+"."+spec.Name.Name] = spec, s
	case *ast.ValueSpec:
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				if value, ok := spec.Values[i].(*ast.BasicLit); ok {
					d.constants[s.pkg+"."+name.Name] = value.Value
				}
			}
		}
	}
}

// shape returns the shape of a format, as lines.
func (d *declared) shape(t *testing.T, f stored) (lines []string) {
	t.Helper()
	todo := slices.Clone(f.types)
	done := map[string]bool{}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if done[name] {
			continue
		}
		done[name] = true
		spec := d.types[name]
		if spec == nil {
			t.Fatalf("%s: there is no type %s", f.name, name)
		}
		lines = append(lines, "type "+name+" "+printed(t, spec.Type))
		todo = append(todo, d.within(name, spec.Type)...)
	}
	for _, name := range f.code {
		lines = append(lines, d.encoders(t, name)...)
	}
	slices.Sort(lines)
	return lines
}

// within returns the types of the module that a type names.
func (d *declared) within(name string, expr ast.Expr) (found []string) {
	s := d.files[name]
	add := func(name string) {
		if d.types[name] != nil {
			found = append(found, name)
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // its names are no types
			ast.Inspect(n.Type, visit)
			return false
		case *ast.FuncType, *ast.InterfaceType: // no data
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				add(imported(s.file, x.Name) + "." + n.Sel.Name)
			}
			return false
		case *ast.Ident:
			add(s.pkg + "." + n.Name)
		}
		return true
	}
	ast.Inspect(expr, visit)
	return found
}

// imported returns the directory of a package of the module by the name that a file uses for it; empty: it is foreign.
func imported(f *ast.File, name string) string {
	for _, imp := range f.Imports {
		target, _ := strconv.Unquote(imp.Path.Value)
		own := path.Base(target)
		if imp.Name != nil {
			own = imp.Name.Name
		}
		if pkg, ours := strings.CutPrefix(target, module); ours && own == name {
			return pkg
		}
	}
	return ""
}

// encoders returns a line for each function of a name.
func (d *declared) encoders(t *testing.T, name string) (lines []string) {
	t.Helper()
	prefix, all := strings.CutSuffix(name, "*")
	for own, f := range d.functions {
		if own == name || all && strings.HasPrefix(own, prefix) {
			lines = append(lines, fmt.Sprintf("func %s %.6x", own, sha256.Sum256([]byte(printed(t, f)))))
		}
	}
	if len(lines) == 0 {
		t.Fatalf("there is no function %s", name)
	}
	return lines
}

// printed returns the text of a node without comments and line breaks.
func printed(t *testing.T, n ast.Node) string {
	t.Helper()
	var b bytes.Buffer
	if err := format.Node(&b, set, n); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// TestStoredFormatsHaveVersions fails when the shape of a stored format changes and its version does not.
func TestStoredFormatsHaveVersions(t *testing.T) {
	const golden = "testdata/formats.golden"
	const writes = "Then run: go test ./internal/arch -run StoredFormats -update"
	d := declarations(t)
	have := map[string][]string{}
	var text strings.Builder
	for _, f := range formats {
		version := d.constants[f.version]
		if f.version != "" && version == "" {
			t.Fatalf("%s: there is no constant %s", f.name, f.version)
		}
		lines := append([]string{"version " + version}, d.shape(t, f)...)
		have[f.name] = lines
		fmt.Fprintf(&text, "%s\n\t%s\n", f.name, strings.Join(lines, "\n\t"))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	before := map[string][]string{}
	for line := range strings.Lines(string(was)) {
		if own, indented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t"); indented {
			before[name] = append(before[name], own)
		} else {
			name = own
		}
	}
	for _, f := range formats {
		was, is := before[f.name], have[f.name]
		if slices.Equal(was, is) {
			continue
		}
		advice := "Its version was raised."
		switch {
		case f.version == "":
			advice = "It has no version: files of all versions of the program must stay readable, so only add fields " +
				"that may be absent."
		case len(was) > 0 && was[0] == is[0]:
			advice = "Raise its version, " + f.version + ", unless programs and files of before and after understand " +
				"each other."
		}
		t.Errorf("The shape of the %s has changed. %s %s\n%s", f.name, advice, writes, difference(was, is))
	}
}

// difference lists the lines that only one of two shapes has.
func difference(was, is []string) string {
	var b strings.Builder
	for _, line := range was {
		if !slices.Contains(is, line) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	return b.String()
}
