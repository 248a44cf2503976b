package preflight

import (
	"path"
	"slices"
	"strings"
)

// argParser is what is known of the options of a program.
type argParser struct {
	options   []option
	flexible  bool   // hyphens and underscores are the same
	tolerates bool   // unknown arguments are no error
	unread    string // why it may know more than the options; empty: it was read as a whole
	single    bool   // one parser is made, so that what is required is required
	file      string // where it begins
	program   *module
}

// source is a file of a tree.
type source struct {
	tree Tree
	path string
}

// resolver gathers the options of a program from its file and from all that its parser is handed to.
type resolver struct {
	f      *files
	engine Tree // where packages are installed from
	script source
	out    *argParser
	seen   map[string]bool
}

const mostHandovers = 200

// parserOf reads the parser of a program that begins in a file. Names limit it to some functions and classes of the
// file.
func (f *files) parserOf(at source, engine Tree, names ...string) *argParser {
	r := &resolver{f: f, engine: engine, script: at, out: &argParser{file: at.path}, seen: map[string]bool{}}
	m := f.module(at.tree, at.path)
	if m == nil {
		r.out.unread = at.path + " cannot be read"
		return r.out
	}
	r.out.program, r.out.single = m, m.parsers == 1
	if len(names) == 0 {
		r.take(m, at, "")
	}
	for _, name := range names {
		r.take(m, at, name)
	}
	return r.out
}

// take takes over what a function, a class or (with the empty name) a whole file does with its parser.
func (r *resolver) take(m *module, at source, name string) {
	id := at.tree.Rev + ":" + at.path + ":" + name
	if r.seen[id] {
		return
	}
	if len(r.seen) > mostHandovers {
		r.miss("its parser is handed on too often")
		return
	}
	r.seen[id] = true
	if at.tree.touches(at.path) {
		r.miss(at.path + " is changed by the patch")
	}
	if m.opaque != "" && name == "" {
		r.miss(m.opaque)
	}
	if name == "" || at == r.script {
		r.out.tolerates = r.out.tolerates || m.tolerates
	}
	r.out.flexible = r.out.flexible || m.flexible
	within := func(i int) bool {
		n := m.regions[i].name
		return name == "" || n == name || strings.HasPrefix(n, name+".")
	}
	for _, o := range m.options {
		if !within(o.region) {
			continue
		}
		if o.dynamic || len(o.names) == 0 && !o.splat {
			r.fields(m, m.regions[o.region].name)
			r.miss(at.path + " makes options whose names are not literal")
		}
		if name != "" || at != r.script {
			o.must = false
		}
		r.out.options = append(r.out.options, o)
	}
	for _, p := range m.passes {
		if within(p.region) {
			r.handOver(m, at, m.regions[p.region].name, p.callee)
		}
	}
}

func (r *resolver) miss(why string) {
	if r.out.unread == "" {
		r.out.unread = why
	}
}

// fields adds the annotated names of the class around a method: options are often made from them.
func (r *resolver) fields(m *module, method string) {
	class, _, _ := strings.Cut(method, ".")
	for _, name := range m.fields[class] {
		r.out.options = append(r.out.options, option{names: []string{"--" + strings.ReplaceAll(name, "_", "-")},
			splat: true})
	}
}

// handOver follows a parser into the function that it is given to.
func (r *resolver) handOver(m *module, at source, from string, callee []string) {
	name := strings.Join(callee, ".")
	switch first := callee[0]; {
	case len(callee) == 1 && m.has(first):
		r.take(m, at, first)
	case len(callee) == 1:
		r.follow(m, at, first, "")
	case first == "self" || first == "cls":
		class, _, _ := strings.Cut(from, ".")
		if len(callee) != 2 || !r.method(m, at, class, callee[1], 0) {
			r.miss(name + " is not found in " + at.path)
		}
	case len(callee) == 2 && m.has(first):
		if !r.method(m, at, first, callee[1], 0) {
			r.miss(name + " is not found in " + at.path)
		}
	case first == "":
		r.miss("its parser is handed to something without a name")
	default:
		r.follow(m, at, first, strings.Join(callee[1:], "."))
	}
}

func (m *module) has(name string) bool {
	return slices.ContainsFunc(m.regions[1:], func(r region) bool { return r.name == name })
}

// method takes a method of a class, or of one that it extends.
func (r *resolver) method(m *module, at source, class, method string, depth int) bool {
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

// follow applies the effect that an imported name has on a parser.
func (r *resolver) follow(m *module, at source, name, method string) {
	all := m.imports[name]
	if len(all) == 0 {
		r.miss(name + " is not found in " + at.path)
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
		r.miss(strings.TrimSuffix(name+"."+method, ".") + " of " + at.path + " is not found in the tree")
	}
}

// object resolves a method of an object that a package exports under a name, such as the current platform: the method
// of its interface, and the method for the planned devices.
func (r *resolver) object(all []imported, at source, method string) bool {
	found := false
	for _, i := range all {
		where, _, ok := r.locate(i.module, at)
		if !ok || path.Base(where.path) != "__init__.py" {
			continue
		}
		for _, name := range []string{"interface.py", "cuda.py"} {
			file := source{where.tree, path.Join(path.Dir(where.path), name)}
			m := r.f.module(file.tree, file.path)
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

// find finds the file in which an imported name is defined, and the name there; the empty name is the file itself.
func (r *resolver) find(i imported, at source, depth int) (*module, source, string, bool) {
	if depth > 8 {
		return nil, source{}, "", false
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
		return nil, source{}, "", false
	}
	separator := "."
	if strings.HasSuffix(i.module, ".") {
		separator = ""
	}
	if where, m, ok := r.locate(i.module+separator+i.name, at); ok && m != nil {
		return m, where, "", true
	}
	return nil, source{}, "", false
}

// roots are where packages lie in a tree.
var roots = []string{"", "python", "src"}

// locate finds the file of a module, as Python would: beside the script, then among what is installed.
func (r *resolver) locate(dotted string, at source) (source, *module, bool) {
	if strings.HasPrefix(dotted, ".") {
		dir := path.Dir(at.path)
		rest := strings.TrimLeft(dotted, ".")
		for range len(dotted) - len(rest) - 1 {
			dir = path.Dir(dir)
		}
		return r.f.python(at.tree, path.Join(dir, strings.ReplaceAll(rest, ".", "/")))
	}
	name := strings.ReplaceAll(dotted, ".", "/")
	if at == r.script {
		if where, m, ok := r.f.python(at.tree, path.Join(path.Dir(at.path), name)); ok {
			return where, m, true
		}
	}
	for _, t := range []Tree{r.engine, at.tree} {
		if where, m, ok := r.f.installed(t, name); ok {
			return where, m, true
		}
	}
	return source{}, nil, false
}

// installed finds a module below the places where a tree keeps its packages.
func (f *files) installed(t Tree, name string) (source, *module, bool) {
	if t.IsZero() {
		return source{}, nil, false
	}
	for _, root := range roots {
		if where, m, ok := f.python(t, path.Join(root, name)); ok {
			return where, m, true
		}
	}
	return source{}, nil, false
}

// python finds the file of a module: NAME.py, or that of a package. The module is nil where the file cannot be read.
func (f *files) python(t Tree, name string) (source, *module, bool) {
	for _, file := range []string{name + ".py", path.Join(name, "__init__.py")} {
		switch s, _ := f.stat(t, file); s {
		case isFile:
			return source{t, file}, f.module(t, file), true
		case unknown:
			return source{t, file}, f.module(Tree{Repo: t.Repo, Rev: t.Rev}, file), true // a patch may change it
		}
	}
	return source{}, nil, false
}
