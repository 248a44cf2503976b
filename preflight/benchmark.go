package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/sh"
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
	var all []program
	understood := true
	if !b.Server.Empty() {
		list, ok := programs(b.Server, server, vars(b.Env, b.ServerEnv))
		all, understood = append(all, list...), ok
		c.placeholders(b, b.Server, list)
	}
	of := offline
	if !b.Server.Empty() {
		of = client
	}
	list, ok := programs(b.Command, of, vars(b.Env))
	all, understood = append(all, list...), understood && ok
	c.placeholders(b, b.Command, list)
	if !b.Fill.Empty() {
		list, ok := programs(b.Fill, of, vars(b.Env))
		for i := range list {
			list[i].fill = true
		}
		all, understood = append(all, list...), understood && ok
		c.placeholders(b, b.Fill, list)
	}
	if !understood {
		c.add(Script, Unverified, "the command is more than a sequence of simple commands, and was not read as a whole",
			"")
	}
	parsers := make([]*argParser, len(all))
	for i := range all {
		all[i].mended = b.Mended
		c.at(b, &all[i])
		parsers[i] = c.script(b, &all[i])
	}
	for i := range all {
		if c.at(b, &all[i]); parsers[i] != nil {
			c.flags(&all[i], parsers[i], otherSide(all, parsers, all[i].side))
		}
		c.paths(b, &all[i], parsers[i])
		c.dataset(b, &all[i], parsers[i])
	}
	c.place = b.Place
	c.model(b, all)
}

// at lets findings point at the command of a program.
func (c *checker) at(b *Benchmark, p *program) {
	switch c.place = b.Command.Place; {
	case p.side == server:
		c.place = b.Server.Place
	case p.fill:
		c.place = b.Fill.Place
	}
	if c.place == "" {
		c.place = b.Place
	}
}

// otherSide is the parser that was read for the other side of a benchmark.
func otherSide(all []program, parsers []*argParser, of side) *argParser {
	for i := range all {
		if parsers[i] != nil && all[i].side != of {
			return parsers[i]
		}
	}
	return nil
}

// placeholders checks that a command was filled in.
func (c *checker) placeholders(b *Benchmark, t Text, list []program) {
	before := c.place
	defer func() { c.place = before }()
	if t.Place != "" {
		c.place = t.Place
	}
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
			status = Warn // an image may set it
		}
		c.add(Placeholder, status, fmt.Sprintf("nothing sets the variable %s that the command uses", name),
			"declare it in env, or write its value")
	}
}

// script returns the argument parser of the file that a program starts with; nil if there is no readable file.
func (c *checker) script(b *Benchmark, p *program) *argParser {
	switch {
	case p.module != "":
		return c.moduleScript(b, p)
	case p.name == "vllm" && len(p.sub) > 0:
		return c.vllm(b, p)
	case p.script != "" && !strings.Contains(p.script, sh.Ref):
		return c.fileScript(b, p)
	}
	return nil
}

// installed is the tree that is installed where a program runs.
func (b *Benchmark) installed(p *program) Tree {
	if p.side == client && b.Image {
		return b.Installed
	}
	return b.Engine
}

// working is the tree that the program's directory has; the zero Tree for none.
func (b *Benchmark) working(p *program) Tree {
	if p.side == server && b.Image {
		return Tree{}
	}
	return b.Client
}

// resolve is a path of a command below the working directory. False: it is not known where it leads, or not below it.
func (p *program) resolve(name string) (string, bool) {
	switch {
	case strings.HasPrefix(name, sh.WorkDir):
		return path.Clean("./" + strings.TrimPrefix(name, sh.WorkDir)), true
	case path.IsAbs(name), strings.HasPrefix(name, "~"), p.Lost, path.IsAbs(p.Dir):
		return "", false
	}
	return path.Join(p.Dir, name), true
}

// place says what a path below the working directory is, by the tree and by what is laid into it.
func (c *checker) lies(b *Benchmark, p *program, name string) (state, Tree, string) {
	for at, tree := range b.Data {
		at = path.Clean(at)
		switch {
		case name == at:
			return isFile, Tree{}, ""
		case strings.HasPrefix(name, at+"/") && tree.IsZero():
			return unknown, Tree{}, ""
		case strings.HasPrefix(name, at+"/"):
			rest := strings.TrimPrefix(name, at+"/")
			s, _ := c.files.stat(tree, rest)
			return s, tree, rest
		}
	}
	tree := b.working(p)
	if tree.IsZero() {
		return absent, Tree{}, ""
	}
	s, _ := c.files.stat(tree, name)
	return s, tree, name
}

// fileScript checks a script that is named by its path.
func (c *checker) fileScript(b *Benchmark, p *program) *argParser {
	name, ok := p.resolve(p.script)
	if !ok {
		c.outside(b, p, p.script, Script)
		return nil
	}
	s, tree, in := c.lies(b, p, name)
	if s == absent && made(p, name) {
		s = unknown
	}
	switch {
	case s == isFile && tree.IsZero():
		return nil
	case s == unknown && tree.IsZero(), s == unknown && c.files.unreadable(tree) != "":
		why := cmp.Or(c.files.unreadable(tree), "it is made when the command runs")
		c.add(Script, Unverified, p.script+": "+why, "")
		return nil
	case s == unknown: // the command may be what measures
		c.add(Script, map[side]Status{server: Unverified, client: Warn, offline: Warn}[p.side], p.script+
			" is changed by the patch", "let the variant protect what measures")
		return &argParser{unread: p.script + " is changed by the patch", file: in}
	case s == isDir:
		c.add(Script, Fail, p.script+" is a directory at "+short(tree.Rev), "name a file")
		return nil
	case s == absent:
		c.missing(b, p, name)
		return nil
	}
	if !p.python && !strings.HasSuffix(in, ".py") {
		c.add(Script, OK, fmt.Sprintf("%s is there at %s", p.script, short(tree.Rev)), "")
		return nil
	}
	return c.begins(p, source{tree, in}, b.installed(p))
}

// missing tells that a script does not exist where the command would look for it.
func (c *checker) missing(b *Benchmark, p *program, name string) {
	tree, status := b.working(p), Fail
	if p.Maybe || p.mended {
		status = Warn
	}
	if tree.IsZero() {
		if s, _ := c.files.stat(b.Engine, name); s == isFile {
			c.add(Script, Warn,
				fmt.Sprintf("%s is in the tree of the candidate, and the command runs in a directory without it",
					p.script),
				"say which revision the command runs in: client = each.commit.parent")
			return
		}
		if b.Engine.IsZero() {
			return // a project without code: what the command finds there is its own matter
		}
		c.add(Script, status, fmt.Sprintf("%s: the command runs in a directory that has no such file", p.script),
			"name it in data, or say client = each.commit.parent")
		return
	}
	remedy := "name a script of that revision"
	if near := c.namesake(tree, name); near != "" {
		remedy = "did you mean " + near + "?"
	}
	c.add(Script, status, fmt.Sprintf("%s does not exist at %s", p.script, short(tree.Rev)), remedy)
}

// namesake finds a file of the same name in the places where scripts lie.
func (c *checker) namesake(t Tree, name string) string {
	for _, dir := range []string{"benchmarks", "benchmark", "scripts", "tools", ""} {
		entries, _ := c.files.list(t, dir)
		if e, ok := entries[path.Base(name)]; ok && !e.Dir && path.Join(dir, path.Base(name)) != name {
			return path.Join(dir, path.Base(name))
		}
	}
	return ""
}

// begins checks the file that a program begins with.
func (c *checker) begins(p *program, at source, engine Tree, names ...string) *argParser {
	m := c.files.module(at.tree, at.path)
	if m == nil {
		c.add(Script, Unverified, at.path+" cannot be read at "+short(at.tree.Rev), "")
		return nil
	}
	if m.stub {
		c.add(Script, Fail, fmt.Sprintf("%s at %s only prints %q and ends", at.path, short(at.tree.Rev),
			firstLine(m.prints)), "use the program that it names, or the client of an earlier revision")
		return nil
	}
	c.add(Script, OK, fmt.Sprintf("%s is there at %s", at.path, short(at.tree.Rev)), "")
	a := c.files.parserOf(at, engine, names...)
	if len(a.options) == 0 && a.unread == "" {
		return nil // it has no parser of this kind
	}
	return a
}

// moduleScript checks python -m: a module of the directory, or one that is installed.
func (c *checker) moduleScript(b *Benchmark, p *program) *argParser {
	name := strings.ReplaceAll(p.module, ".", "/")
	top, _, _ := strings.Cut(name, "/")
	here := false
	for _, t := range []Tree{b.working(p), b.installed(p)} {
		if t.IsZero() {
			continue
		}
		for _, root := range roots {
			for _, file := range []string{name + ".py", path.Join(name, "__main__.py")} {
				switch s, _ := c.files.stat(t, path.Join(root, file)); s {
				case isFile:
					return c.begins(p, source{t, path.Join(root, file)}, b.installed(p))
				case unknown:
					here = true
				}
			}
			if s, _ := c.files.stat(t, path.Join(root, top)); s == isDir && top != name {
				if in, _ := c.files.stat(t, path.Join(root, top, "__init__.py")); in == isFile {
					here = true
					if c.files.unreadable(t) == "" && c.certain(t, path.Join(root, name)) {
						c.add(Script, Fail, fmt.Sprintf("the module %s does not exist at %s", p.module, short(t.Rev)),
							"name a module of that revision")
						return nil
					}
				}
			}
		}
	}
	if here {
		c.add(Script, Unverified, "the module "+p.module+" is not known as it will be", "")
	}
	return nil
}

// certain reports whether a module is known not to be in a tree.
func (c *checker) certain(t Tree, name string) bool {
	for _, file := range []string{name + ".py", path.Join(name, "__main__.py")} {
		if s, _ := c.files.stat(t, file); s != absent {
			return false
		}
	}
	return true
}

// vllm checks a subcommand of the program vllm.
func (c *checker) vllm(b *Benchmark, p *program) *argParser {
	t := b.installed(p)
	if s, _ := c.files.stat(t, "vllm"); s != isDir {
		return nil
	}
	var at []string
	switch {
	case len(p.sub) == 2:
		at = []string{"vllm/entrypoints/cli/benchmark/" + p.sub[1] + ".py", "vllm/benchmarks/" + p.sub[1] + ".py"}
	case p.sub[0] == "serve":
		at = []string{"vllm/entrypoints/cli/serve.py", "vllm/scripts.py"}
	default:
		return nil
	}
	sure := true
	for _, file := range at {
		switch s, _ := c.files.stat(t, file); s {
		case isFile:
			return c.begins(p, source{t, file}, t)
		case unknown:
			sure = false
		}
	}
	if sure {
		c.add(Script, Fail, fmt.Sprintf("%s does not exist at %s", p.title(), short(t.Rev)),
			"use the script of that revision: benchmarks/*.py, or python -m vllm.entrypoints.openai.api_server")
	}
	return nil
}

// made reports whether something that ran before could have made a file.
func made(p *program, name string) bool {
	for _, before := range p.After {
		if before == ">"+name {
			return true
		}
		if !strings.HasPrefix(before, ">") && !slices.Contains([]string{"cd", "export", "echo", "true", ":", "test",
			"[", "set", "unset", "mkdir", "sleep", "ulimit"}, path.Base(before)) {
			return true
		}
	}
	return false
}

func short(rev string) string { return rev[:min(len(rev), 12)] }

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), 120)]
}
