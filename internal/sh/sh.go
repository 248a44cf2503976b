// Package sh parses shell text without running it: which programs start, with which words, in which directory. It
// rejects text that it does not fully understand, since a part of a command proves nothing.
package sh

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Word is one word of a command, as far as it is known before the command runs.
type Word struct {
	Text    string
	Partial bool     // a part is only known at run time; Text has the rest
	Unset   []string // variables in the word that nothing sets
}

// A Command is one simple command of a shell text.
type Command struct {
	Assigns map[string]Word // assignments before the command
	Words   []Word
	Dir     string   // directory, relative to the working directory
	Lost    bool     // the directory is not known
	Writes  []string // files that it writes output to
	After   []string // programs that ran before it
	Maybe   bool     // it may not run: it is inside a condition or a loop
	Not     bool     // its status is negated
	Then    string   // operator after it: ; && || | & or nothing
}

// Marks in a text for parts that are only known at run time.
const (
	Ref    = "\x01" // end of that path
	RefEnd = "\x02" // ends it
	// WorkDir begins a path below the working directory, independent of the current one: the value of SRC and SITE.
	WorkDir = "\x03"
)

// largestText limits the texts, in bytes: the library's recursion is as deep as a text is nested.
const largestText = 32 << 10

// Parse parses a text for sh; vars are set in it. It returns false if it does not understand the text.
func Parse(text string, vars map[string]Word) ([]Command, bool) {
	file, err := parse(text)
	if err != nil {
		return nil, false
	}
	r := &reader{variables: maps.Clone(vars)}
	if r.variables == nil {
		r.variables = variables{}
	}
	if err := r.all(file.Stmts, ""); err != nil {
		return nil, false
	}
	return r.list, true
}

func parse(text string) (*syntax.File, error) {
	if len(text) > largestText {
		return nil, errForeign
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

// Words returns the words of one plain command; variables before its name come first, as NAME=value. It returns false
// if the text is more than one plain command, or if a part is only known at run time.
func Words(text string) (words []string, ok bool) {
	file, err := parse(text)
	if err != nil || len(file.Stmts) > 1 {
		return nil, false
	}
	for _, s := range file.Stmts {
		call, plain := s.Cmd.(*syntax.CallExpr)
		if !plain || s.Negated || s.Semicolon.IsValid() || len(s.Redirs) > 0 {
			return nil, false
		}
		parts := make([]*syntax.Word, 0, len(call.Assigns)+len(call.Args))
		for _, a := range call.Assigns {
			if a.Append || a.Index != nil || a.Array != nil {
				return nil, false
			}
			value := &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: a.Name.Value + "="}}}
			if a.Value != nil {
				value.Parts = append(value.Parts, a.Value.Parts...)
			}
			parts = append(parts, value)
		}
		for _, part := range append(parts, call.Args...) {
			w, err := variables{}.word(part)
			if err != nil || w.Partial {
				return nil, false
			}
			words = append(words, w.Text)
		}
	}
	return words, true
}

// errForeign is the error for shell syntax that reader does not understand.
var errForeign = errors.New("it is not understood")

// reader reads the statements of a text in the order of execution.
type reader struct {
	variables
	list   []Command
	dir    string
	lost   bool
	nested int      // number of surrounding conditions and loops
	names  []string // names of the programs so far
}

// all reads statements; the operator then follows the last one.
func (r *reader) all(list []*syntax.Stmt, then string) error {
	for i, s := range list {
		next := ";"
		switch {
		case s.Background:
			next = "&"
		case i == len(list)-1 && !s.Semicolon.IsValid():
			next = then
		}
		if err := r.statement(s, next); err != nil {
			return err
		}
	}
	return nil
}

// maybe reads statements that may not run, or may run more than once.
func (r *reader) maybe(lists ...[]*syntax.Stmt) error {
	r.nested++
	defer func() { r.nested-- }()
	for _, list := range lists {
		if err := r.all(list, ";"); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) statement(s *syntax.Stmt, then string) error {
	switch is := s.Cmd.(type) {
	case nil: // only a redirection
		return nil
	case *syntax.CallExpr:
		return r.call(s, is, then)
	case *syntax.DeclClause:
		return r.declaration(s, is, then)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		return r.end(Command{Words: []Word{{Text: "test", Partial: true}}}, s, then)
	case *syntax.BinaryCmd:
		if s.Negated { // the negation applies to a whole pipeline
			return errForeign
		}
		return errors.Join(r.statement(is.X, is.Op.String()), r.statement(is.Y, then))
	case *syntax.Subshell:
		dir, lost := r.dir, r.lost
		err := r.all(is.Stmts, ";")
		r.dir, r.lost = dir, lost
		return err
	case *syntax.Block:
		return r.all(is.Stmts, then)
	case *syntax.TimeClause:
		if is.Stmt == nil {
			return nil
		}
		return r.statement(is.Stmt, then)
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return r.compound(is)
	}
	return errForeign
}

// compound reads a condition or a loop.
func (r *reader) compound(c syntax.Command) error {
	switch is := c.(type) {
	case *syntax.IfClause:
		for ; is != nil; is = is.Else {
			if err := r.maybe(is.Cond, is.Then); err != nil {
				return err
			}
		}
	case *syntax.WhileClause:
		return r.maybe(is.Cond, is.Do)
	case *syntax.ForClause:
		loop, ok := is.Loop.(*syntax.WordIter)
		if !ok || is.Select {
			return errForeign
		}
		r.variables[loop.Name.Value] = Word{Partial: true}
		return r.maybe(is.Do)
	case *syntax.CaseClause:
		for _, item := range is.Items {
			if err := r.maybe(item.Stmts); err != nil {
				return err
			}
		}
	}
	return nil
}

// call reads a simple command.
func (r *reader) call(s *syntax.Stmt, c *syntax.CallExpr, then string) error {
	var is Command
	for _, a := range c.Assigns {
		if a.Index != nil || a.Array != nil {
			return errForeign
		}
		value, err := r.word(a.Value)
		if err != nil {
			return err
		}
		if is.Assigns == nil {
			is.Assigns = map[string]Word{}
		}
		value.Partial = value.Partial || a.Append
		is.Assigns[a.Name.Value] = value
	}
	for _, a := range c.Args {
		w, err := r.word(a)
		if err != nil {
			return err
		}
		is.Words = append(is.Words, w)
	}
	return r.end(is, s, then)
}

// declaration reads export and similar commands, which the library does not treat as simple commands.
func (r *reader) declaration(s *syntax.Stmt, c *syntax.DeclClause, then string) error {
	is := Command{Words: []Word{{Text: c.Variant.Value}}}
	for _, a := range c.Args {
		w, err := r.word(a.Value)
		if err != nil || a.Index != nil || a.Array != nil {
			return errForeign
		}
		switch {
		case a.Name != nil && a.Naked:
			w.Text = a.Name.Value
		case a.Name != nil:
			w.Text = a.Name.Value + "=" + w.Text
		}
		is.Words = append(is.Words, w)
	}
	return r.end(is, s, then)
}

// end records a simple command and its effect on the following ones.
func (r *reader) end(is Command, s *syntax.Stmt, then string) error {
	for _, to := range s.Redirs {
		switch to.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			target, err := r.word(to.Word)
			if err != nil {
				return err
			}
			is.Writes = append(is.Writes, target.Text)
		}
	}
	is.Dir, is.Lost, is.Then, is.Maybe, is.Not = r.dir, r.lost, then, r.nested > 0, s.Negated
	is.After = slices.Clip(r.names)
	r.list = append(r.list, is)
	if len(is.Words) == 0 {
		maps.Copy(r.variables, is.Assigns)
		return nil
	}
	name := is.Words[0].Text
	switch name {
	case "cd", "pushd":
		r.changeDir(&is)
	case "export", "readonly", "local", "declare", "typeset", "read", "unset":
		r.assign(is.Words[1:])
	case ".", "source", "eval", "set":
		r.variables[anything] = Word{Partial: true}
	}
	r.names = append(r.names, name)
	for _, target := range is.Writes {
		r.names = append(r.names, ">"+target)
	}
	return nil
}

func (r *reader) changeDir(is *Command) {
	args := is.Words[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && args[0].Text != "-" {
		args = args[1:]
	}
	if is.Maybe || is.Then == "||" || len(args) != 1 || args[0].Partial || strings.Contains(args[0].Text, Ref) ||
		args[0].Text == "-" {
		r.lost = true
		return
	}
	to := args[0].Text
	switch {
	case strings.HasPrefix(to, WorkDir):
		r.dir, r.lost = path.Clean("./"+strings.TrimPrefix(to, WorkDir)), false
	case path.IsAbs(to):
		r.dir, r.lost = path.Clean(to), false
	default:
		r.dir = path.Join(r.dir, to)
	}
}
