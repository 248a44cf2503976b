package python

import (
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/preflight/revision"
)

// Parser has the known options of a program.
type Parser struct {
	Options   []Option
	Flexible  bool   // hyphens and underscores are the same
	Tolerates bool   // unknown arguments are no error
	Unread    string // why it may know more than Options; empty: it was read as a whole
	single    bool   // the program makes one parser, so a required option is required
	Program   *Module
}

// File is a file of a tree.
type File struct {
	Tree revision.Tree
	Path string
}

// Reader reads and scans the Python files of revisions, each once.
type Reader struct {
	files   *revision.Files
	modules map[string]*Module // by ID of the file
}

func NewReader(f *revision.Files) *Reader { return &Reader{f, map[string]*Module{}} }

// Module returns a scanned Python file; nil if there is none, or it is not known.
func (f *Reader) Module(t revision.Tree, name string) *Module {
	content, id, ok := f.files.Read(t, name)
	if !ok {
		return nil
	}
	m := f.modules[id]
	if m == nil {
		m = scan(string(content))
		f.modules[id] = m
	}
	return m
}

// resolver collects the options of a program from its file, and from all functions that get its parser.
type resolver struct {
	f      *Reader
	engine revision.Tree // the tree of installed packages
	script File
	out    *Parser
	seen   map[string]bool
}

const mostHandovers = 200

// Parser reads the parser of a program that starts in a file.
func (f *Reader) Parser(at File, engine revision.Tree) *Parser {
	r := &resolver{f: f, engine: engine, script: at, out: &Parser{}, seen: map[string]bool{}}
	m := f.Module(at.Tree, at.Path)
	if m == nil {
		r.out.Unread = at.Path + " cannot be read"
		return r.out
	}
	r.out.Program, r.out.single = m, m.parsers == 1
	r.take(m, at, "")
	return r.out
}

// take adds the options that a function, a class or (with the empty name) a whole file defines.
func (r *resolver) take(m *Module, at File, name string) {
	id := at.Tree.Rev + ":" + at.Path + ":" + name
	if r.seen[id] {
		return
	}
	if len(r.seen) > mostHandovers {
		r.miss("its parser is handed on too often")
		return
	}
	r.seen[id] = true
	if at.Tree.Touches(at.Path) {
		r.miss(at.Path + " is changed by the patch")
	}
	if m.opaque != "" && name == "" {
		r.miss(m.opaque)
	}
	if name == "" || at == r.script {
		r.out.Tolerates = r.out.Tolerates || m.tolerates
	}
	r.out.Flexible = r.out.Flexible || m.flexible
	within := func(i int) bool {
		n := m.regions[i].name
		return name == "" || n == name || strings.HasPrefix(n, name+".")
	}
	for _, o := range m.options {
		if !within(o.region) {
			continue
		}
		if o.dynamic || len(o.Names) == 0 && !o.splat {
			r.fields(m, m.regions[o.region].name)
			r.miss(at.Path + " makes options whose names are not literal")
		}
		if name != "" || at != r.script {
			o.required = false
		}
		r.out.Options = append(r.out.Options, o)
	}
	for _, p := range m.passes {
		if within(p.region) {
			r.handOver(m, at, m.regions[p.region].name, p.callee)
		}
	}
}

func (r *resolver) miss(why string) {
	if r.out.Unread == "" {
		r.out.Unread = why
	}
}

// fields adds the annotated names of a method's class, since options are often made from them.
func (r *resolver) fields(m *Module, method string) {
	class, _, _ := strings.Cut(method, ".")
	for _, name := range m.fields[class] {
		r.out.Options = append(r.out.Options, Option{Names: []string{"--" + strings.ReplaceAll(name, "_", "-")},
			splat: true})
	}
}

// handOver follows a parser into a function that gets it.
func (r *resolver) handOver(m *Module, at File, from string, callee []string) {
	switch first := callee[0]; {
	case len(callee) == 1 && m.has(first):
		r.take(m, at, first)
	case len(callee) == 1:
		r.follow(m, at, first, "")
	case first == "self", first == "cls", len(callee) == 2 && m.has(first):
		class := first
		if first == "self" || first == "cls" {
			class, _, _ = strings.Cut(from, ".")
		}
		if len(callee) != 2 || !r.method(m, at, class, callee[1], 0) {
			r.miss(strings.Join(callee, ".") + " is not found in " + at.Path)
		}
	case first == "":
		r.miss("its parser is handed to something without a name")
	default:
		r.follow(m, at, first, strings.Join(callee[1:], "."))
	}
}

func (m *Module) has(name string) bool {
	return slices.ContainsFunc(m.regions[1:], func(r region) bool { return r.name == name })
}

// method takes a method of a class or of its base classes.
func (r *resolver) method(m *Module, at File, class, method string, depth int) bool {
	if m.has(class + "." + method) {
		r.take(m, at, class+"."+method)
		return true
	}
	if depth > 8 {
		return false
	}
	for _, base := range m.bases[class] {
		if m.has(base) && r.method(m, at, base, method, depth+1) {
			return true
		}
		for _, i := range m.imports[base] {
			if other, where, local, ok := r.find(i, at, 0); ok && local != "" &&
				r.method(other, where, local, method, depth+1) {
				return true
			}
		}
	}
	return false
}

// follow takes an imported function or method that gets a parser.
func (r *resolver) follow(m *Module, at File, name, method string) {
	all := m.imports[name]
	if len(all) == 0 {
		r.miss(name + " is not found in " + at.Path)
		return
	}
	found := false
	for _, i := range all {
		other, where, local, ok := r.find(i, at, 0)
		switch {
		case !ok:
		case method == "" && local != "":
			r.take(other, where, local)
			found = true
		case method != "" && local == "" && other.has(method):
			r.take(other, where, method)
			found = true
		case method != "" && local != "" && r.method(other, where, local, method, 0):
			found = true
		}
	}
	if !found && method != "" {
		found = r.object(all, at, method)
	}
	if !found {
		r.miss(strings.TrimSuffix(name+"."+method, ".") + " of " + at.Path + " is not found in the tree")
	}
}

// object takes a method of an object that a package exports under a name, such as the current platform: the method of
// its interface, and the one for CUDA devices.
func (r *resolver) object(all []imported, at File, method string) bool {
	found := false
	for _, i := range all {
		where, _, ok := r.locate(i.module, at)
		if !ok || path.Base(where.Path) != "__init__.py" {
			continue
		}
		for _, name := range []string{"interface.py", "cuda.py"} {
			file := File{where.Tree, path.Join(path.Dir(where.Path), name)}
			m := r.f.Module(file.Tree, file.Path)
			if m == nil {
				continue
			}
			for _, reg := range m.regions {
				if strings.HasSuffix(reg.name, "."+method) {
					r.take(m, file, reg.name)
					found = true
				}
			}
		}
	}
	return found
}

// find returns the file that defines an imported name, and the name there; "" if the file itself is meant.
func (r *resolver) find(i imported, at File, depth int) (*Module, File, string, bool) {
	if depth > 8 {
		return nil, File{}, "", false
	}
	where, m, ok := r.locate(i.module, at)
	if ok && m != nil {
		switch {
		case i.name == "":
			return m, where, "", true
		case m.has(i.name):
			return m, where, i.name, true
		}
		for _, next := range m.imports[i.name] {
			if other, there, local, ok := r.find(next, where, depth+1); ok {
				return other, there, local, true
			}
		}
	}
	if i.name == "" {
		return nil, File{}, "", false
	}
	separator := "."
	if strings.HasSuffix(i.module, ".") {
		separator = ""
	}
	if where, m, ok := r.locate(i.module+separator+i.name, at); ok && m != nil {
		return m, where, "", true
	}
	return nil, File{}, "", false
}

// Roots are the directories of packages in a tree.
var Roots = []string{"", "python", "src"}

// locate finds the file of a module, as Python would: beside the script, then among installed packages.
func (r *resolver) locate(dotted string, at File) (File, *Module, bool) {
	if strings.HasPrefix(dotted, ".") {
		dir := path.Dir(at.Path)
		rest := strings.TrimLeft(dotted, ".")
		for range len(dotted) - len(rest) - 1 {
			dir = path.Dir(dir)
		}
		return r.f.python(at.Tree, path.Join(dir, strings.ReplaceAll(rest, ".", "/")))
	}
	name := strings.ReplaceAll(dotted, ".", "/")
	if at == r.script {
		if where, m, ok := r.f.python(at.Tree, path.Join(path.Dir(at.Path), name)); ok {
			return where, m, true
		}
	}
	for _, t := range []revision.Tree{r.engine, at.Tree} {
		if where, m, ok := r.f.installed(t, name); ok {
			return where, m, true
		}
	}
	return File{}, nil, false
}

// installed finds a module below the Roots of a tree.
func (f *Reader) installed(t revision.Tree, name string) (File, *Module, bool) {
	if t.IsZero() {
		return File{}, nil, false
	}
	for _, root := range Roots {
		if where, m, ok := f.python(t, path.Join(root, name)); ok {
			return where, m, true
		}
	}
	return File{}, nil, false
}

// python finds the file of a module: NAME.py, or that of a package. The module is nil if the file cannot be read.
func (f *Reader) python(t revision.Tree, name string) (File, *Module, bool) {
	for _, file := range []string{name + ".py", path.Join(name, "__init__.py")} {
		switch s, _ := f.files.Stat(t, file); s {
		case revision.IsFile:
			return File{t, file}, f.Module(t, file), true
		case revision.Unknown:
			return File{t, file}, f.Module(revision.Tree{Repo: t.Repo, Rev: t.Rev}, file), true // a patch may change it
		}
	}
	return File{}, nil, false
}
