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
	"OUT": true, "PORT": true, "CUDA_VISIBLE_DEVICES": true, "PATH": true, "HOME": true, "LANG": true, "BENCHGRAPH_PROC": true,
	"PWD": true, "OLDPWD": true, "IFS": true, "PPID": true, "OPTARG": true, "OPTIND": true, "PS1": true, "PS2": true, "PS4": true,
	"SHLVL": true, "_": true,
}

// shellParser reads a text for sh. What it does not understand makes it give up: nothing is concluded from half a command.
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

// parseArgv takes a command that is a list: one simple command, in which benchgraph replaces its own variables.
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

// keyword takes the words that structure a text. It returns whether it was one.
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
	if p.nested > 0 || s.then == "||" || len(args) != 1 || args[0].partial || strings.Contains(args[0].text, Ref) || args[0].text == "-" {
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

// readWord reads one word, in which quotes and variables count.
func (p *shellParser) readWord() word {
	var w word
	var b strings.Builder
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case strings.IndexByte(" \t\r\n;|&()<>", c) >= 0:
			w.text = b.String()
			return w
		case c == '\'':
			p.at++
			i := strings.IndexByte(p.in[p.at:], '\'')
			if i < 0 {
				p.gaveUp, p.at = true, len(p.in)
				break
			}
			b.WriteString(p.in[p.at : p.at+i])
			p.at += i + 1
			w.quoted = true
		case c == '"':
			p.at++
			inner := p.doubleQuoted(true)
			b.WriteString(inner.text)
			w.partial, w.quoted, w.unset = w.partial || inner.partial, true, append(w.unset, inner.unset...)
		case c == '\\':
			p.at++
			if p.at < len(p.in) {
				if p.in[p.at] != '\n' {
					b.WriteByte(p.in[p.at])
				}
				p.at++
			}
		case c == '$' || c == '`':
			p.expand(&b, &w)
		case c == '*' || c == '?' || c == '[' && b.Len() > 0:
			w.partial = true
			b.WriteByte(c)
			p.at++
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	w.text = b.String()
	return w
}

// doubleQuoted reads up to the closing quote, or all that there is.
func (p *shellParser) doubleQuoted(closes bool) word {
	var w word
	var b strings.Builder
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case c == '"' && closes:
			p.at++
			w.text = b.String()
			return w
		case c == '\\' && closes && p.at+1 < len(p.in):
			if next := p.in[p.at+1]; strings.IndexByte("$`\"\\\n", next) < 0 {
				b.WriteByte(c)
				b.WriteByte(next)
			} else if next != '\n' {
				b.WriteByte(next)
			}
			p.at += 2
		case c == '$' || c == '`' && closes:
			p.expand(&b, &w)
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	p.gaveUp = p.gaveUp || closes
	w.text = b.String()
	return w
}

// expand reads a variable or a substitution.
func (p *shellParser) expand(b *strings.Builder, w *word) {
	rest := p.in[p.at:]
	switch {
	case rest[0] == '`':
		i := strings.IndexByte(rest[1:], '`')
		if i < 0 {
			i, p.gaveUp = len(rest)-2, true
		}
		p.at += i + 2
		w.partial = true
	case strings.HasPrefix(rest, "$("):
		p.at += balanced(rest[1:], '(', ')') + 1
		w.partial = true
	case strings.HasPrefix(rest, "${"):
		n := balanced(rest[1:], '{', '}')
		p.at += n + 1
		p.substitute(strings.TrimSuffix(rest[2:n+1], "}"), b, w)
	default:
		n := 1
		for n < len(rest) && isNameByte(rest[n], n > 1) {
			n++
		}
		if n == 1 {
			if len(rest) > 1 && strings.IndexByte("@*#?-$!0123456789", rest[1]) >= 0 {
				p.at += 2
				w.partial = true
				return
			}
			b.WriteByte('$')
			p.at++
			return
		}
		p.at += n
		p.variable(rest[1:n], true, b, w)
	}
}

// substitute is what stands between the braces of ${…}.
func (p *shellParser) substitute(text string, b *strings.Builder, w *word) {
	n := 0
	for n < len(text) && isNameByte(text[n], n > 0) {
		n++
	}
	name, op := text[:n], text[n:]
	switch {
	case name != "" && op == "":
		p.variable(name, true, b, w)
	case name != "" && (strings.HasPrefix(op, ":-") || strings.HasPrefix(op, "-")):
		if _, set := p.vars[name]; set || runtimeVars[name] || strings.ContainsAny(op, "$`") {
			p.variable(name, false, b, w)
			return
		}
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(op, ":"), "-"))
	default:
		w.partial = true
	}
}

func (p *shellParser) variable(name string, must bool, b *strings.Builder, w *word) {
	value, set := p.vars[name]
	switch {
	case name == "SRC" || name == "SITE":
		b.WriteString(workDir)
	case set:
		b.WriteString(value.text)
		w.partial = w.partial || value.partial
	default:
		b.WriteString("$" + name)
		w.partial = true
		if _, any := p.vars["\x00any"]; must && !any && !runtimeVars[name] {
			w.unset = append(w.unset, name)
		}
	}
}

// balanced is the length of a text up to the bracket that closes the one at its beginning.
func balanced(text string, open, closing byte) int {
	depth, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == open:
			depth++
		case c == closing:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

func isNameByte(c byte, digits bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digits && c >= '0' && c <= '9'
}

func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i], i > 0) {
			return false
		}
	}
	return s != ""
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
