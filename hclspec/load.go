package hclspec

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
	"github.com/benchgraph/benchgraph/hclspec/internal/variable"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Options select a project, and give values to its reading.
type Options struct {
	Dir      string            // the project's directory; empty: the current one
	Home     string            // if Dir is a copy: absolute path of the original; empty: no copy
	File     string            // the root file, below Dir; empty: benchmarks.hcl, or else benchmarks.hcl.json
	Vars     map[string]string // values of variables from the command line
	VarFiles []string          // files of values, in HCL or JSON; later ones are stronger, Vars strongest
	EnvVars  map[string]string // values from the environment, weakest of all, by the variable's name
	Lock     *lockfile.Lock    // pins; nil: nothing is pinned
	Version  string            // of benchgraph, for required_version; empty: not checked
	History  History           // answers questions of expressions; nil: no answer is known
	Strict   bool              // mistakes of single commits and candidates are errors, too
	Packs    iofs.FS           // the packs of the program, a directory each; nil: none
	Try      *Try              // an additional candidate; nil: none
	// finds more mistakes in a Spec and its files, by name; faulty: the Spec may lack parts; nil: none
	Check func(spec *Spec, files map[string]*hcl.File, faulty bool) hcl.Diagnostics
}

// Load reads a project. The diagnostics are all mistakes, in the order of the files; the Spec is nil if one of them is
// an error. A mistake of a single commit or candidate takes only that one out, with a warning, and is among the Spec's
// Mistakes. Load always returns the files that diagnostics may refer to, by name.
func Load(o Options) (*Spec, map[string]*hcl.File, hcl.Diagnostics) {
	return load(o, eval.StandardBounds())
}

// Abandoned reports whether reading was stopped because it took too long or too much memory. Its goroutine may still
// run, so the program should end soon.
func Abandoned(diags hcl.Diagnostics) bool {
	return len(diags) == 1 && diags[0].Summary == eval.Stopped
}

func load(o Options, bounds eval.Bounds) (*Spec, map[string]*hcl.File, hcl.Diagnostics) {
	l, err := newLoader(o)
	if err != nil {
		return nil, nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "No project", Detail: err.Error() + "."}}
	}
	var diags hcl.Diagnostics
	stopped := l.scope.Watch(bounds, func() {
		defer l.dir.Close()
		l.read()
		l.declare()
		l.decode()
		if len(l.blocks) == 0 && !l.scope.Diags.HasErrors() {
			l.scope.Diags.Warn("", hcl.Range{}, "Nothing is declared",
				l.names[0]+" has no block. Where there is no such file, benchgraph init writes one.")
		}
		diags = l.scope.Diags.All(l.names)
		l.spec.Reads, l.spec.Absolute = l.dir.Reads(), l.dir.MadeAbsolute()
		l.spec.Names = l.lock.sorted()
	})
	switch {
	case stopped != nil:
		return nil, l.sources.all(), hcl.Diagnostics{stopped}
	case diags.HasErrors():
		return nil, l.sources.all(), diags
	}
	return l.spec, l.sources.all(), diags
}

// sources holds the files that a diagnostic may point into, by name. One goroutine reads the project and adds files;
// another one waits for it and reads them.
type sources struct {
	mu     sync.Mutex
	byName map[string]*hcl.File
}

func (s *sources) add(name string, f *hcl.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name] = f
}

func (s *sources) get(name string) *hcl.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

func (s *sources) all() map[string]*hcl.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byName)
}

// Format brings a file in native syntax into its canonical layout.
func Format(src []byte) []byte { return hclwrite.Format(src) }

// loader is one reading of a project.
type loader struct {
	options    Options
	dir        *project.Dir
	scope      *eval.Scope
	sources    sources
	names      []string           // of the files, in the order of reading
	eachFixes  map[Address]reader // readers of the fixes that use each
	packFiles  map[string]bool    // names of the files that belong to packs
	blocks     []*eval.Block
	kinds      map[string]kind
	schemas    []*eval.Schema
	decls      map[string][]*declaration // by kind, in the order of the files
	byName     map[Address]*declaration
	params     mentions
	lock       *lockIndex
	commits    *commitSet
	variant    *variantSet
	set        *candidateSet
	clientRevs map[Address]string // revisions of the sources of clients
	uses       []use              // the references between nodes so far
	instances  int                // number of instances of for_each so far
	references int                // number of references between instances so far
	shadow     bool               // decoded blocks are checked, and not kept
	laid       []laid
	rows       faults
	spec       *Spec
}

func newLoader(o Options) (*loader, error) {
	if o.Dir == "" {
		o.Dir = "."
	}
	dir, err := project.Open(o.Dir, o.Home)
	if err != nil {
		return nil, err
	}
	l := &loader{
		options: o, dir: dir, sources: sources{byName: map[string]*hcl.File{}}, packFiles: map[string]bool{},
		eachFixes: map[Address]reader{}, byName: map[Address]*declaration{}, decls: map[string][]*declaration{},
		kinds: map[string]kind{},
		lock:  newLockIndex(o.Lock), clientRevs: map[Address]string{},
		spec: &Spec{Dir: dir.Path()},
		scope: &eval.Scope{Diags: &diag.Diagnostics{}, Funcs: funcs.Table(dir), Roots: map[string]eval.Root{},
			Lost: map[string]bool{}},
	}
	for name, f := range l.historyFunctions() {
		funcs.Add(l.scope.Funcs, name, f)
	}
	for _, k := range kinds() {
		l.kinds[k.schema.Kind] = k
	}
	l.schemas = schemas()
	return l, nil
}

// read reads the root file and the files that it includes.
func (l *loader) read() {
	root, ok := l.rootFile()
	if !ok {
		return
	}
	l.readFile(root)
	for _, name := range l.included(root) {
		l.readFile(name)
	}
	l.spec.Files = slices.Clone(l.names)
	l.readPacks(root)
	if other := RootFiles[1]; l.options.File == "" && l.dir.Has(other) && !slices.Contains(l.names, other) {
		l.scope.Diags.Warn("", hcl.Range{}, "File not read", fmt.Sprintf(
			"%s is left out, since there is a %s beside it. Delete one of them, let the other include it, or say "+
				"with -f which one is to be read.", other, root))
	}
	l.settings()
}

// RootFiles are the names of root files that are tried if none is given.
var RootFiles = [...]string{"benchmarks.hcl", "benchmarks.hcl.json"}

// rootFile finds the root file.
func (l *loader) rootFile() (string, bool) {
	name := l.options.File
	for _, standard := range RootFiles {
		if l.dir.Has(standard) && name == "" {
			name = standard
		}
	}
	if name == "" {
		l.scope.Diags.Error("", hcl.Range{}, "No benchmarks.hcl", fmt.Sprintf(
			"There is no benchmarks.hcl in %s. %sbenchgraph init writes one; -chdir=DIR or -f FILE say where one is.",
			l.dir.Path(), l.dir.Above(RootFiles[:])))
		return "", false
	}
	if filepath.IsAbs(name) {
		if rel, err := filepath.Rel(l.dir.Path(), name); err == nil {
			name = rel
		}
	}
	name = path.Clean(filepath.ToSlash(name))
	if _, err := l.dir.Size(name); err != nil {
		if info, statErr := os.Stat(filepath.Join(l.dir.Path(), name)); statErr == nil && info.IsDir() {
			err = fmt.Errorf("%q is a directory; -f names the file", name)
		}
		l.scope.Diags.Error("", hcl.Range{}, "File not readable",
			err.Error()+". Files are looked for below "+l.dir.Path()+"; -chdir=DIR chooses another directory.")
		return "", false
	}
	return name, true
}

func (l *loader) readFile(name string) {
	src, err := l.dir.Read(name)
	if err != nil {
		l.scope.Diags.Error("", hcl.Range{}, "File not readable", err.Error()+".")
		l.scope.Partial = true
		return
	}
	l.parseFile(src, name)
}

// parseFile adds the blocks of a file to those of the project.
func (l *loader) parseFile(src []byte, name string) {
	f, diags := l.scope.Parse(src, name)
	l.scope.Diags.Add("", diags...)
	l.names = append(l.names, name)
	l.sources.add(name, f.Syntax)
	blocks, diags := f.Blocks(l.schemas)
	l.scope.Diags.Add("", diags...)
	l.blocks = append(l.blocks, blocks...)
	l.scope.Partial = l.scope.Partial || f.Broken()
	for _, name := range f.Lost() {
		l.scope.Lost[name] = true
	}
	l.params.scan(src, name)
}

// settingsSchemas returns the blocks that declare no node.
func settingsSchemas() []*eval.Schema {
	return []*eval.Schema{
		{Kind: "benchgraph", Key: []string{"sandbox"}, Free: []string{"required_version", "include", "packs"},
			Blocks: []*eval.Schema{storeSchema()}},
		{Kind: "locals", Open: true},
		{Kind: "cost", Free: []string{"gpu_hour"}},
		variable.Schema(),
	}
}

func (l *loader) blocksOf(kind string) []*eval.Block {
	var found []*eval.Block
	for _, b := range l.blocks {
		if b.Schema.Kind == kind {
			found = append(found, b)
		}
	}
	return found
}

// constant returns a reader of a block that belongs to no instance.
func (l *loader) constant(b *eval.Block) reader {
	return reader{Reader: l.scope.Reader(b, b.Expressions(), nil), l: l}
}

// maxIncluded bounds the number of files that the root file may include.
const maxIncluded = 10_000

// included returns the files that the root file's benchgraph block names.
func (l *loader) included(root string) []string {
	settings := l.blocksOf("benchgraph")
	if len(settings) == 0 {
		return nil
	}
	l.variablesOfRoot()
	r := l.constant(settings[0])
	var patterns []string
	for _, p := range r.Strs("include") {
		not, negated := strings.CutPrefix(p, "!")
		if p = not; !path.IsAbs(p) {
			p = path.Join(path.Dir(root), p)
		}
		if negated {
			p = "!" + p
		}
		patterns = append(patterns, p)
	}
	found, err := l.dir.Select(patterns)
	if err != nil {
		r.Fail(r.At("include"), "Invalid include", "%s.", err)
		l.scope.Partial = true
	}
	for _, i := range found.Unmatched {
		r.Fail(r.AtItem("include", i), "Nothing to include", "%q matches no file. Patterns are relative to %s.",
			patterns[i], root)
		l.scope.Partial = true
	}
	if len(found.Files) > maxIncluded {
		r.Fail(r.At("include"), "Too many files", "The patterns match %d files; %d can be included. Narrow them.",
			len(found.Files), maxIncluded)
		found.Files = nil
	}
	for _, name := range found.Files {
		if !strings.HasSuffix(name, ".hcl") && !strings.HasSuffix(name, ".json") {
			r.Fail(r.At("include"), "Not an HCL file", "%q ends neither in .hcl nor in .json. Narrow the pattern.",
				name)
		}
	}
	return slices.DeleteFunc(found.Files, func(name string) bool {
		return name == root || strings.HasSuffix(name, ".lock.hcl") || !strings.HasSuffix(name, ".hcl") &&
			!strings.HasSuffix(name, ".json")
	})
}

// variablesOfRoot defines the variables of the root file, so that include may use them. The files to include are not
// read yet, so mistakes are left to declare, which defines the variables of all files.
func (l *loader) variablesOfRoot() {
	diags := l.scope.Diags
	l.scope.Diags = &diag.Diagnostics{}
	variable.Define(l.scope, l.blocksOf("variable"), l.given())
	l.scope.Diags = diags
}

// settings checks the benchgraph blocks of all files together.
func (l *loader) settings() {
	for i, b := range l.blocksOf("benchgraph") {
		if i > 0 {
			l.scope.Diags.Error("", b.Range, "Duplicate benchgraph block",
				fmt.Sprintf("There is a benchgraph block already, at %s.", l.blocksOf("benchgraph")[0].Range))
			continue
		}
		r := l.constant(b)
		l.spec.Sandbox = r.sandbox()
		for _, nested := range b.Blocks("store") {
			l.spec.Store = r.nested(nested).store()
		}
		want := r.Str("required_version")
		if want == "" {
			continue
		}
		constraint, err := version.NewConstraint(want)
		if err != nil {
			r.Fail(r.At("required_version"), "Invalid version constraint",
				"%q is not a version constraint such as \">= 0.1.0\".", want)
			continue
		}
		have, err := version.NewVersion(l.options.Version)
		if err == nil && !constraint.Check(have.Core()) {
			r.Fail(r.At("required_version"), "Another version is required",
				"This is benchgraph %s; the file requires %s.", l.options.Version, want)
		}
	}
}

// given returns the values of variables from outside of the files.
func (l *loader) given() variable.Given {
	g := variable.Given{Flags: l.options.Vars, Env: l.options.EnvVars, Keep: func(name string, src []byte) {
		l.sources.add(name, &hcl.File{Bytes: src})
	}}
	for _, name := range l.options.VarFiles {
		src, err := readVars(name)
		if err != nil {
			detail := fmt.Sprintf("%s: %v.", name, fs.Cause(err))
			if errors.Is(err, iofs.ErrNotExist) {
				detail = fmt.Sprintf("There is no file %q. It is looked for below the directory that benchgraph was "+
					"started in.", name)
			}
			l.scope.Diags.Error("", hcl.Range{}, "Variable file not readable", detail)
			continue
		}
		f, diags := l.scope.Parse(src, name)
		l.sources.add(name, f.Syntax)
		attrs, more := f.Attributes()
		l.scope.Diags.Add("", append(diags, more...)...)
		g.Files = append(g.Files, attrs)
	}
	return g
}

// readVars reads a file that the user names on the command line. It may lie anywhere, and may be a pipe, so its size is
// bounded.
func readVars(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return fs.ReadAll(f, project.MaxFile)
}
