package preflight

import (
	"maps"
	"path"
	"strings"
)

// word is one word of a command, as far as it is known before the command runs.
type word struct {
	text    string
	partial bool     // something of it is only known when it runs; the text has the rest
	quoted  bool     // part of it was in quotes
	unset   []string // variables in it that nothing sets
}

// simple is one simple command of a shell text.
type simple struct {
	assigns map[string]word // that stand before it
	words   []word
	dir     string // where it runs, relative to the working directory
	lost    bool   // the directory is not known
	writes  []string
	after   []string // programs that ran before it
	maybe   bool     // it may not be run: it stands in a condition, a loop or a function
	not     bool     // its end counts for the opposite
	then    string   // what follows: one of ; && || | & or nothing
}

// workDir begins a path below the working directory, whatever the current one is: the value of SRC and SITE.
const workDir = "\x03"

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
	vars     map[string]word
	list     []simple
	cur      simple
	dir      string
	lost     bool
	dirs     []string // of the subshells around
	nested   int      // conditions, loops and functions around
	names    []string // programs so far
	heredocs []string
	gaveUp   bool
}

const largestCommand = 1 << 20

// parseShell reads a text for sh. False: it was not understood.
func parseShell(text string, vars map[string]word) ([]simple, bool) {
	if len(text) > largestCommand {
		return nil, false
	}
	p := &shellParser{in: text, vars: maps.Clone(vars)}
	if p.vars == nil {
		p.vars = map[string]word{}
	}
	for p.at < len(p.in) && !p.gaveUp {
		p.step()
	}
	p.end("")
	return p.list, !p.gaveUp && p.nested == 0
}

// parseArgv parses a command in list form: one simple command, in which benchgraph replaces its own variables.
func parseArgv(argv []string, vars map[string]word) []simple {
	s := simple{assigns: map[string]word{}}
	for _, a := range argv {
		p := &shellParser{in: a, vars: vars}
		w := p.doubleQuoted(false)
		w.unset = nil // what benchgraph does not replace stays as it is
		s.words = append(s.words, w)
	}
	return []simple{s}
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
		if len(p.cur.words) > 0 || len(p.cur.assigns) > 0 {
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
		p.heredocs = append(p.heredocs, target.text)
	case out:
		p.cur.writes = append(p.cur.writes, target.text)
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
	if len(p.cur.words) == 0 {
		if name, _, ok := strings.Cut(raw, "="); ok && isName(name) {
			if p.cur.assigns == nil {
				p.cur.assigns = map[string]word{}
			}
			w.text = strings.TrimPrefix(w.text, name+"=")
			p.cur.assigns[name] = w
			return
		}
		if !w.quoted && p.keyword(w.text) {
			return
		}
	}
	if isDigits(raw) && p.at < len(p.in) && (p.in[p.at] == '>' || p.in[p.at] == '<') {
		return // the number of a descriptor
	}
	p.cur.words = append(p.cur.words, w)
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
		p.cur.not = !p.cur.not
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
	if name := p.readWord().text; isName(name) {
		p.vars[name] = word{partial: true}
	}
	for p.at < len(p.in) && p.in[p.at] != ';' && p.in[p.at] != '\n' {
		p.at++
	}
}

// end finishes a simple command.
func (p *shellParser) end(then string) {
	s := p.cur
	p.cur = simple{}
	if len(s.words) == 0 && len(s.assigns) == 0 {
		return
	}
	s.dir, s.lost, s.then, s.maybe = p.dir, p.lost, then, p.nested > 0
	s.after = p.names[:len(p.names):len(p.names)]
	if len(s.words) == 0 {
		maps.Copy(p.vars, s.assigns)
		p.list = append(p.list, s)
		return
	}
	name := s.words[0].text
	switch name {
	case "cd", "pushd":
		p.changeDir(s)
	case "export", "readonly", "local", "declare", "read", "set", "unset", ".", "source", "eval":
		p.assign(s)
	}
	p.names = append(p.names, name)
	for _, target := range s.writes {
		p.names = append(p.names, ">"+target)
	}
	p.list = append(p.list, s)
}

func (p *shellParser) assign(s simple) {
	switch s.words[0].text {
	case ".", "source", "eval", "set":
		p.vars["\x00any"] = word{partial: true} // anything may be set by now
		return
	}
	for _, w := range s.words[1:] {
		name, value, ok := strings.Cut(w.text, "=")
		if !isName(name) {
			continue
		}
		if _, known := p.vars[name]; ok || !known {
			p.vars[name] = word{text: value, partial: w.partial || !ok}
		}
	}
}

func (p *shellParser) changeDir(s simple) {
	args := s.words[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") && args[0].text != "-" {
		args = args[1:]
	}
	if p.nested > 0 || s.then == "||" || len(args) != 1 || args[0].partial || strings.Contains(args[0].text, Ref) ||
		args[0].text == "-" {
		p.lost = true
		return
	}
	to := args[0].text
	switch {
	case strings.HasPrefix(to, workDir):
		p.dir, p.lost = path.Clean("./"+strings.TrimPrefix(to, workDir)), false
	case path.IsAbs(to):
		p.dir, p.lost = path.Clean(to), false
	default:
		p.dir = path.Join(p.dir, to)
	}
}
