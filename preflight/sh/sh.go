// Package sh reads the commands of a shell text without running it: which programs are started, with which words, in
// which directory. Text that it does not understand is refused as a whole, since half a command proves nothing.
package sh

import (
	"maps"
	"path"
	"strings"
)

// A Word is one word of a command, as far as it is known before the command runs.
type Word struct {
	Text    string
	Partial bool     // something of it is only known when it runs; the text has the rest
	quoted  bool     // part of it was in quotes
	Unset   []string // variables in it that nothing sets
}

// A Command is one simple command of a shell text.
type Command struct {
	Assigns map[string]Word // that stand before it
	Words   []Word
	Dir     string   // where it runs, relative to the working directory
	Lost    bool     // the directory is not known
	Writes  []string // files that its output goes to
	After   []string // programs that ran before it
	Maybe   bool     // it may not be run: it stands in a condition, a loop or a function
	Not     bool     // its end counts for the opposite
	Then    string   // what follows: one of ; && || | & or nothing
}

// Marks in a text, in the place of what is only known when it runs.
const (
	Ref    = "\x01" // begins the path of another node's result
	RefEnd = "\x02" // ends it
	// WorkDir begins a path below the working directory, whatever the current one is: the value of SRC and SITE.
	WorkDir = "\x03"
)

// runtimeVars are set by benchgraph or the shell when a command runs.
var runtimeVars = map[string]bool{
	"OUT": true, "PORT": true, "CUDA_VISIBLE_DEVICES": true, "PATH": true, "HOME": true, "LANG": true,
	"BENCHGRAPH_PROC": true,
	"PWD":             true, "OLDPWD": true, "IFS": true, "PPID": true, "OPTARG": true, "OPTIND": true, "PS1": true,
	"PS2":   true,
	"PS4":   true,
	"SHLVL": true, "_": true,
}

// shellParser parses a text for sh. At syntax that it does not know, it gives up: half a command proves nothing.
type shellParser struct {
	in       string
	at       int
	vars     map[string]Word
	list     []Command
	cur      Command
	dir      string
	lost     bool
	dirs     []string // of the subshells around
	nested   int      // conditions, loops and functions around
	names    []string // programs so far
	heredocs []string
	gaveUp   bool
}

const largestCommand = 1 << 20

// Parse reads a text for sh, in which the variables are set. False: it was not understood.
func Parse(text string, vars map[string]Word) ([]Command, bool) {
	if len(text) > largestCommand {
		return nil, false
	}
	p := &shellParser{in: text, vars: maps.Clone(vars)}
	if p.vars == nil {
		p.vars = map[string]Word{}
	}
	for p.at < len(p.in) && !p.gaveUp {
		p.step()
	}
	p.end("")
	return p.list, !p.gaveUp && p.nested == 0
}

// ParseArgv parses a command in list form: one simple command, in which benchgraph replaces its own variables.
func ParseArgv(argv []string, vars map[string]Word) []Command {
	s := Command{Assigns: map[string]Word{}}
	for _, a := range argv {
		p := &shellParser{in: a, vars: vars}
		w := p.doubleQuoted(false)
		w.Unset = nil // what benchgraph does not replace stays as it is
		s.Words = append(s.Words, w)
	}
	return []Command{s}
}

// step reads one blank, operator, comment or word.
func (p *shellParser) step() {
	switch c := p.in[p.at]; {
	case c == ' ' || c == '\t' || c == '\r':
		p.at++
	case c == '\\' && strings.HasPrefix(p.in[p.at:], "\\\n"):
		p.at += 2
	case c == '\\' && strings.HasPrefix(p.in[p.at:], "\\\r\n"):
		p.at += 3
	case c == '\n':
		p.at++
		p.end(";")
		p.skipHeredocs()
	case c == '#':
		if i := strings.IndexByte(p.in[p.at:], '\n'); i >= 0 {
			p.at += i
		} else {
			p.at = len(p.in)
		}
	case strings.HasPrefix(p.in[p.at:], "&&"), strings.HasPrefix(p.in[p.at:], "||"):
		op := p.in[p.at : p.at+2]
		p.at += 2
		p.end(op)
	case strings.HasPrefix(p.in[p.at:], ";;"):
		p.gaveUp = true
	case strings.HasPrefix(p.in[p.at:], "&>"):
		p.at++
		p.redirect()
	case c == ';' || c == '|' || c == '&':
		p.at++
		p.end(string(c))
	case c == '(':
		p.at++
		if len(p.cur.Words) > 0 || len(p.cur.Assigns) > 0 {
			p.gaveUp = true // a function, or an array
			return
		}
		p.dirs = append(p.dirs, p.dir)
	case c == ')':
		p.at++
		p.end(";")
		if len(p.dirs) == 0 {
			p.gaveUp = true
			return
		}
		p.dir, p.dirs = p.dirs[len(p.dirs)-1], p.dirs[:len(p.dirs)-1]
	case c == '<' || c == '>':
		p.redirect()
	default:
		p.takeWord()
	}
}

// redirect reads "> file", ">> file", "2>&1", "< file" and the beginning of a here document.
func (p *shellParser) redirect() {
	out := p.in[p.at] == '>'
	here := strings.HasPrefix(p.in[p.at:], "<<") && !strings.HasPrefix(p.in[p.at:], "<<<")
	if strings.HasPrefix(p.in[p.at:], "<(") || strings.HasPrefix(p.in[p.at:], ">(") {
		p.gaveUp = true
		return
	}
	p.at++
	for p.at < len(p.in) && strings.IndexByte("<>|&-", p.in[p.at]) >= 0 {
		p.at++
	}
	for p.at < len(p.in) && (p.in[p.at] == ' ' || p.in[p.at] == '\t') {
		p.at++
	}
	if p.at >= len(p.in) || strings.IndexByte("\n;|&()<>", p.in[p.at]) >= 0 {
		return
	}
	target := p.readWord()
	switch {
	case here:
		p.heredocs = append(p.heredocs, target.Text)
	case out:
		p.cur.Writes = append(p.cur.Writes, target.Text)
	}
}

// skipHeredocs passes over the here documents that were begun on the line before.
func (p *shellParser) skipHeredocs() {
	for _, end := range p.heredocs {
		for {
			line, rest, more := strings.Cut(p.in[p.at:], "\n")
			p.at = len(p.in) - len(rest)
			if !more {
				p.at = len(p.in)
			}
			if strings.TrimLeft(line, "\t") == end || !more {
				break
			}
		}
	}
	p.heredocs = nil
}

// takeWord reads a word and puts it into the command.
func (p *shellParser) takeWord() {
	begin := p.at
	w := p.readWord()
	raw := p.in[begin:p.at]
	if len(p.cur.Words) == 0 {
		if name, _, ok := strings.Cut(raw, "="); ok && isName(name) {
			if p.cur.Assigns == nil {
				p.cur.Assigns = map[string]Word{}
			}
			w.Text = strings.TrimPrefix(w.Text, name+"=")
			p.cur.Assigns[name] = w
			return
		}
		if !w.quoted && p.keyword(w.Text) {
			return
		}
	}
	if isDigits(raw) && p.at < len(p.in) && (p.in[p.at] == '>' || p.in[p.at] == '<') {
		return // the number of a descriptor
	}
	p.cur.Words = append(p.cur.Words, w)
}

// keyword consumes a keyword of the shell and reports whether there was one.
func (p *shellParser) keyword(text string) bool {
	switch text {
	case "if", "while", "until", "for":
		p.nested++
		if text == "for" {
			p.loopVariable()
		}
	case "fi", "done":
		p.nested--
	case "!":
		p.cur.Not = !p.cur.Not
	case "then", "else", "elif", "do", "{", "}", "time":
	case "case", "function", "select", "esac":
		p.gaveUp = true
	default:
		return false
	}
	return true
}

// loopVariable reads "NAME in words" up to the end of the list.
func (p *shellParser) loopVariable() {
	for p.at < len(p.in) && (p.in[p.at] == ' ' || p.in[p.at] == '\t') {
		p.at++
	}
	if name := p.readWord().Text; isName(name) {
		p.vars[name] = Word{Partial: true}
	}
	for p.at < len(p.in) && p.in[p.at] != ';' && p.in[p.at] != '\n' {
		p.at++
	}
}

// end finishes a simple command.
func (p *shellParser) end(then string) {
	s := p.cur
	p.cur = Command{}
	if len(s.Words) == 0 && len(s.Assigns) == 0 {
		return
	}
	s.Dir, s.Lost, s.Then, s.Maybe = p.dir, p.lost, then, p.nested > 0
	s.After = p.names[:len(p.names):len(p.names)]
	if len(s.Words) == 0 {
		maps.Copy(p.vars, s.Assigns)
		p.list = append(p.list, s)
		return
	}
	name := s.Words[0].Text
	switch name {
	case "cd", "pushd":
		p.changeDir(s)
	case "export", "readonly", "local", "declare", "read", "set", "unset", ".", "source", "eval":
		p.assign(s)
	}
	p.names = append(p.names, name)
	for _, target := range s.Writes {
		p.names = append(p.names, ">"+target)
	}
	p.list = append(p.list, s)
}

func (p *shellParser) assign(s Command) {
	switch s.Words[0].Text {
	case ".", "source", "eval", "set":
		p.vars["\x00any"] = Word{Partial: true} // anything may be set by now
		return
	}
	for _, w := range s.Words[1:] {
		name, value, ok := strings.Cut(w.Text, "=")
		if !isName(name) {
			continue
		}
		if _, known := p.vars[name]; ok || !known {
			p.vars[name] = Word{Text: value, Partial: w.Partial || !ok}
		}
	}
}

func (p *shellParser) changeDir(s Command) {
	args := s.Words[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && args[0].Text != "-" {
		args = args[1:]
	}
	if p.nested > 0 || s.Then == "||" || len(args) != 1 || args[0].Partial || strings.Contains(args[0].Text, Ref) ||
		args[0].Text == "-" {
		p.lost = true
		return
	}
	to := args[0].Text
	switch {
	case strings.HasPrefix(to, WorkDir):
		p.dir, p.lost = path.Clean("./"+strings.TrimPrefix(to, WorkDir)), false
	case path.IsAbs(to):
		p.dir, p.lost = path.Clean(to), false
	default:
		p.dir = path.Join(p.dir, to)
	}
}
