package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/python"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

// benchmark checks the commands of one benchmark.
func (c *checker) benchmark(b *Benchmark) {
	vars := func(envs ...map[string]string) map[string]sh.Word {
		all := map[string]sh.Word{}
		for _, env := range envs {
			for name, value := range env {
				all[name] = sh.Word{Text: value, Partial: strings.Contains(value, "$")}
			}
		}
		for _, name := range b.Secrets {
			all[name] = sh.Word{Partial: true}
		}
		for _, name := range b.FixEnv {
			all[name] = sh.Word{Partial: true}
		}
		return all
	}
	side := program.Offline
	if !b.Server.Empty() {
		side = program.Client
	}
	var all []program.Program
	understood, fill := true, 0
	for _, command := range []struct {
		program.Text
		side program.Side
		vars map[string]sh.Word
	}{{b.Server, program.Server, vars(b.Env, b.ServerEnv)}, {b.Command, side, vars(b.Env)}, {b.Fill, side, vars(b.Env)}} {
		fill = len(all) // index of the first program of Fill
		list, ok := program.Read(command.Text, command.side, command.vars)
		all, understood = append(all, list...), understood && ok
		c.placeholders(b, command.Text, list)
	}
	if !understood {
		c.add(Script, Unverified, "the command is more than a sequence of simple commands, and was not read as a whole",
			"")
	}
	parsers := make([]*python.Parser, len(all))
	for i := range all {
		all[i].Mended = b.Mended
		c.place = cmp.Or(all[i].Place, b.Place)
		parsers[i] = c.script(b, &all[i])
	}
	for i := range all {
		if c.place = cmp.Or(all[i].Place, b.Place); parsers[i] != nil {
			c.flags(&all[i], parsers[i], otherSide(all, parsers, all[i].Side))
		}
		c.paths(b, &all[i])
		c.dataset(&all[i], parsers[i])
	}
	c.place = b.Place
	c.model(b, all[:fill])
	c.model(b, all[fill:])
}

// otherSide returns the parser of a program on the other side of a benchmark; nil if none was read.
func otherSide(all []program.Program, parsers []*python.Parser, of program.Side) *python.Parser {
	for i := range all {
		if parsers[i] != nil && all[i].Side != of {
			return parsers[i]
		}
	}
	return nil
}

// placeholders checks whether all variables of a command are set.
func (c *checker) placeholders(b *Benchmark, t program.Text, list []program.Program) {
	defer func(before string) { c.place = before }(c.place)
	c.place = cmp.Or(t.Place, c.place)
	unset := map[string]bool{}
	for _, p := range list {
		for _, w := range p.Words {
			for _, name := range w.Unset {
				unset[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unset)) {
		status := Fail // commands are run by sh -u
		if b.Image || t.Argv != nil {
			status = Warn // the image may set it
		}
		c.add(Placeholder, status, fmt.Sprintf("nothing sets the variable %s that the command uses", name),
			"declare it in env, or write its value")
	}
}

// script returns the argument parser of the file that a program starts with; nil if there is no readable file.
func (c *checker) script(b *Benchmark, p *program.Program) *python.Parser {
	switch {
	case p.Module != "":
		return c.moduleScript(b, p)
	case p.Name == "vllm" && len(p.Sub) > 0:
		return c.vllm(b, p)
	case p.Script != "" && !strings.Contains(p.Script, sh.Ref):
		return c.fileScript(b, p)
	}
	return nil
}

// installed returns the tree that is installed where a program runs.
func (b *Benchmark) installed(p *program.Program) revision.Tree {
	if p.Side == program.Client && b.Image {
		return b.Installed
	}
	return b.Engine
}

// working returns the tree in the working directory of a program; the zero Tree if there is none.
func (b *Benchmark) working(p *program.Program) revision.Tree {
	if p.Side == program.Server && b.Image {
		return revision.Tree{}
	}
	return b.Client
}

// lies returns the state of a path below the working directory, with the tree and the path in it. The path may be in
// the tree, or be laid there by data.
func (c *checker) lies(b *Benchmark, p *program.Program, name string) (revision.State, revision.Tree, string) {
	for at, tree := range b.Data {
		at = path.Clean(at)
		switch {
		case name == at:
			return revision.IsFile, revision.Tree{}, ""
		case strings.HasPrefix(name, at+"/") && tree.IsZero():
			return revision.Unknown, revision.Tree{}, ""
		case strings.HasPrefix(name, at+"/"):
			rest := strings.TrimPrefix(name, at+"/")
			s, _ := c.files.Stat(tree, rest)
			return s, tree, rest
		}
	}
	tree := b.working(p)
	if tree.IsZero() {
		return revision.Absent, revision.Tree{}, ""
	}
	s, _ := c.files.Stat(tree, name)
	return s, tree, name
}

// fileScript checks a script that is named by its path.
func (c *checker) fileScript(b *Benchmark, p *program.Program) *python.Parser {
	name, ok := p.Resolve(p.Script)
	if !ok {
		c.outside(b, p, p.Script, Script)
		return nil
	}
	s, tree, in := c.lies(b, p, name)
	if s == revision.Absent && program.Made(p, name) {
		s = revision.Unknown
	}
	switch {
	case s == revision.IsFile && tree.IsZero():
		return nil
	case s == revision.Unknown && tree.IsZero(), s == revision.Unknown && c.files.Unreadable(tree) != "":
		why := cmp.Or(c.files.Unreadable(tree), "it is made when the command runs")
		c.add(Script, Unverified, p.Script+": "+why, "")
		return nil
	case s == revision.Unknown && !tree.Touches(in):
		c.add(Script, Unverified, p.Script+" is a link, or lies behind one", "")
		return nil
	case s == revision.Unknown: // the patched script may be the one that measures
		status := Warn
		if p.Side == program.Server {
			status = Unverified
		}
		c.add(Script, status, p.Script+" is changed by the patch", "let the variant protect what measures")
		return &python.Parser{Unread: p.Script + " is changed by the patch"}
	case s == revision.IsDir:
		c.add(Script, Fail, p.Script+" is a directory at "+short(tree.Rev), "name a file")
		return nil
	case s == revision.Absent:
		c.missing(b, p, name)
		return nil
	}
	if !p.Python && !strings.HasSuffix(in, ".py") {
		c.add(Script, OK, fmt.Sprintf("%s is there at %s", p.Script, short(tree.Rev)), "")
		return nil
	}
	return c.begins(python.File{Tree: tree, Path: in}, b.installed(p))
}

// missing reports a script that does not exist in the working directory of its command.
func (c *checker) missing(b *Benchmark, p *program.Program, name string) {
	tree := b.working(p)
	if tree.IsZero() {
		if s, _ := c.files.Stat(b.Engine, name); s == revision.IsFile {
			c.add(Script, Warn,
				fmt.Sprintf("%s is in the tree of the candidate, and the command runs in a directory without it",
					p.Script),
				"say which revision the command runs in: client = each.commit.parent")
			return
		}
		if b.Engine.IsZero() {
			return // a project without code: its directory is not known
		}
		c.add(Script, failing(p), fmt.Sprintf("%s: the command runs in a directory that has no such file", p.Script),
			"name it in data, or say client = each.commit.parent")
		return
	}
	remedy := "name a script of that revision"
	if near := c.namesake(tree, name); near != "" {
		remedy = "did you mean " + near + "?"
	}
	c.add(Script, failing(p), fmt.Sprintf("%s does not exist at %s", p.Script, short(tree.Rev)), remedy)
}

// failing returns the status of a certain mistake: Fail, or Warn if the program may not run or may be changed by a fix.
func failing(p *program.Program) Status {
	if p.Maybe || p.Mended {
		return Warn
	}
	return Fail
}

// namesake returns a file of the same name in a usual place of scripts; "" if there is none.
func (c *checker) namesake(t revision.Tree, name string) string {
	for _, dir := range []string{"benchmarks", "benchmark", "scripts", "tools", ""} {
		entries, _ := c.files.List(t, dir)
		if e, ok := entries[path.Base(name)]; ok && !e.Dir && path.Join(dir, path.Base(name)) != name {
			return path.Join(dir, path.Base(name))
		}
	}
	return ""
}

// begins checks the file that a program starts with, and returns its parser.
func (c *checker) begins(at python.File, engine revision.Tree) *python.Parser {
	m := c.python.Module(at.Tree, at.Path)
	if m == nil {
		c.add(Script, Unverified, at.Path+" cannot be read at "+short(at.Tree.Rev), "")
		return nil
	}
	if m.Stub {
		c.add(Script, Fail, fmt.Sprintf("%s at %s only prints %q and ends", at.Path, short(at.Tree.Rev),
			firstLine(m.Prints)), "use the program that it names, or the client of an earlier revision")
		return nil
	}
	c.add(Script, OK, fmt.Sprintf("%s is there at %s", at.Path, short(at.Tree.Rev)), "")
	a := c.python.Parser(at, engine)
	if len(a.Options) == 0 && a.Unread == "" {
		return nil // it has no parser that can be read
	}
	return a
}

// moduleScript checks the module of python -m: in the working directory, or installed.
func (c *checker) moduleScript(b *Benchmark, p *program.Program) *python.Parser {
	name := strings.ReplaceAll(p.Module, ".", "/")
	top, _, _ := strings.Cut(name, "/")
	here := false
	for _, t := range []revision.Tree{b.working(p), b.installed(p)} {
		if t.IsZero() {
			continue
		}
		for _, root := range python.Roots {
			for _, file := range []string{name + ".py", path.Join(name, "__main__.py")} {
				switch s, _ := c.files.Stat(t, path.Join(root, file)); s {
				case revision.IsFile:
					return c.begins(python.File{Tree: t, Path: path.Join(root, file)}, b.installed(p))
				case revision.Unknown:
					here = true
				}
			}
			if s, _ := c.files.Stat(t, path.Join(root, top)); s == revision.IsDir && top != name {
				if in, _ := c.files.Stat(t, path.Join(root, top, "__init__.py")); in == revision.IsFile {
					here = true
					if c.files.Unreadable(t) == "" && c.certain(t, path.Join(root, name)) {
						c.add(Script, Fail, fmt.Sprintf("the module %s does not exist at %s", p.Module, short(t.Rev)),
							"name a module of that revision")
						return nil
					}
				}
			}
		}
	}
	if here {
		c.add(Script, Unverified, "the module "+p.Module+" is not known as it will be", "")
	}
	return nil
}

// certain reports whether a module is certainly not in a tree.
func (c *checker) certain(t revision.Tree, name string) bool {
	for _, file := range []string{name + ".py", path.Join(name, "__main__.py")} {
		if s, _ := c.files.Stat(t, file); s != revision.Absent {
			return false
		}
	}
	return true
}

// vllm checks a subcommand of the program vllm.
func (c *checker) vllm(b *Benchmark, p *program.Program) *python.Parser {
	t := b.installed(p)
	if s, _ := c.files.Stat(t, "vllm"); s != revision.IsDir {
		return nil
	}
	var at []string
	switch {
	case len(p.Sub) == 2:
		at = []string{"vllm/entrypoints/cli/benchmark/" + p.Sub[1] + ".py", "vllm/benchmarks/" + p.Sub[1] + ".py"}
	case p.Sub[0] == "serve":
		at = []string{"vllm/entrypoints/cli/serve.py", "vllm/scripts.py"}
	default:
		return nil
	}
	sure := true
	for _, file := range at {
		switch s, _ := c.files.Stat(t, file); s {
		case revision.IsFile:
			return c.begins(python.File{Tree: t, Path: file}, t)
		case revision.Unknown:
			sure = false
		}
	}
	if sure {
		c.add(Script, Fail, fmt.Sprintf("%s does not exist at %s", p.Title(), short(t.Rev)),
			"use the script of that revision: benchmarks/*.py, or python -m vllm.entrypoints.openai.api_server")
	}
	return nil
}

func short(rev string) string { return rev[:min(len(rev), 12)] }

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), 120)]
}
