package python

import (
	"regexp"
	"slices"
	"strings"
)

// Module has the facts about argument parsers in one Python file.
type Module struct {
	imports map[string][]imported // by local name; several are alternatives (try: … except ImportError: …)
	regions []region              // functions, methods and classes; the first is the file itself
	options []Option
	passes  []pass
	fields  map[string][]string // annotated names, by class
	bases   map[string][]string // by class

	parsers   int             // number of parsers that the file makes
	flexible  bool            // one of them treats hyphens and underscores alike
	tolerates bool            // unknown arguments are kept: parse_known_args, REMAINDER
	opaque    string          // why a part of a parser cannot be read; empty: all can
	Prints    string          // the texts that it prints
	Stub      bool            // it only prints and exits
	Downloads bool            // it can download files
	named     map[string]bool // variables with parsers
}

// imported is the origin of a name.
type imported struct {
	module string // dotted, with leading dots for a relative one
	name   string // name in the module; empty: the module itself
}

// region is a function, a method or a class.
type region struct {
	name   string // "", "f", "C" or "C.m"
	indent int
}

// Option is one call of add_argument.
type Option struct {
	region     int
	Names      []string // --x, -x; for a positional argument, its name
	action     string
	nargs      string
	choices    []string // literal texts; nil: not declared, or not readable
	Default    string   // default, if it is a literal text
	HasDefault bool     // there is a default other than None
	required   bool
	dynamic    bool // names or behaviour are not literal, so the names are not known
	splat      bool // some keywords come from a dictionary
	typed      bool // it has a type other than str
}

// pass is a call that gets a parser.
type pass struct {
	region int
	callee []string // dotted
}

var parserName = regexp.MustCompile(`(?i)(parser|subparsers|group|args_parser|argparser)[0-9]*$`)

// scan reads a Python file.
func scan(src string) *Module {
	m := &Module{
		imports: map[string][]imported{}, fields: map[string][]string{}, bases: map[string][]string{},
		named:   map[string]bool{},
		regions: []region{{indent: -1}},
	}
	var open []int // regions that enclose the line
	quiet := true  // only imports, texts, prints and exits so far
	lines := pyLines(src)
	for _, line := range lines {
		m.nameParsers(line.tokens)
	}
	for _, line := range lines {
		for len(open) > 0 && m.regions[open[len(open)-1]].indent >= line.indent {
			open = open[:len(open)-1]
		}
		t := line.tokens
		if len(t) == 0 {
			continue
		}
		if t[0].text == "async" && t[0].kind == pyName {
			t = t[1:]
		}
		quiet = m.quiet(t) && quiet
		around := 0
		if len(open) > 0 {
			around = open[len(open)-1]
		}
		switch {
		case len(t) > 1 && t[0].kind == pyName && (t[0].text == "def" || t[0].text == "class") && t[1].kind == pyName:
			open = append(open, m.define(t, around, line.indent))
			if end := signature(t); end < len(t) {
				m.statement(t[end:], open[len(open)-1])
			}
		case len(t) > 1 && t[0].kind == pyName && (t[0].text == "import" || t[0].text == "from"):
			m.imported(t)
		default:
			m.statement(t, around)
		}
	}
	m.Stub = quiet && m.Prints != ""
	return m
}

// nameParsers notes the variables of a line that are parsers: p = ArgumentParser(…), p.add_argument(…).
func (m *Module) nameParsers(t []token) {
	for i := 2; i < len(t); i++ {
		switch {
		case t[i].kind != pyName || !t[i-1].is(".") || t[i-2].kind != pyName:
		case t[i].text == "add_argument" || t[i].text == "add_argument_group" || t[i].text == "parse_args":
			m.named[t[i-2].text] = true
		}
	}
	if len(t) > 3 && t[0].kind == pyName && t[1].is("=") {
		for i := 2; i+1 < min(len(t), 8); i++ {
			if t[i].kind == pyName && strings.HasSuffix(t[i].text, "ArgumentParser") && t[i+1].is("(") {
				m.named[t[0].text] = true
			}
		}
	}
}

// signature returns the index after the colon at the end of a definition's head.
func signature(t []token) int {
	depth := 0
	for i := range t {
		switch {
		case t[i].is("("), t[i].is("["), t[i].is("{"):
			depth++
		case t[i].is(")"), t[i].is("]"), t[i].is("}"):
			depth--
		case t[i].is(":") && depth == 0:
			return i + 1
		}
	}
	return len(t)
}

// quiet reports whether a line could be in a file that only prints that it has moved.
func (m *Module) quiet(t []token) bool {
	if t[0].kind == pyString {
		return true
	}
	switch t[0].text {
	case "import", "from", "raise", "sys", "exit", "quit", "return", "pass", "warnings", "os":
		return true
	case "print":
		for _, x := range t {
			if x.kind == pyString && len(m.Prints) < longestLiteral {
				m.Prints += x.text + "\n"
			}
		}
		return true
	case "def":
		return len(t) > 1 && t[1].text == "main"
	case "main":
		return true
	case "if":
		return len(t) > 1 && t[1].text == "__name__"
	}
	return false
}

func (m *Module) define(t []token, around, indent int) int {
	name := t[1].text
	if outer := m.regions[around].name; outer != "" && m.regions[around].indent >= 0 {
		name = outer + "." + name
	}
	m.regions = append(m.regions, region{name, indent})
	if t[0].text == "class" {
		for _, x := range t[2:] {
			if x.kind == pyName {
				m.bases[name] = append(m.bases[name], x.text)
			}
		}
	}
	return len(m.regions) - 1
}

// imported reads "import a.b as c" and "from a import (b, c as d)".
func (m *Module) imported(t []token) {
	var from strings.Builder
	i := 1
	if t[0].text == "from" {
		for ; i < len(t) && t[i].text != "import"; i++ {
			from.WriteString(t[i].text)
		}
		i++
	}
	for i < len(t) {
		var dotted strings.Builder
		for ; i < len(t) && !t[i].is(",") && t[i].text != "as"; i++ {
			if !t[i].is("(") && !t[i].is(")") {
				dotted.WriteString(t[i].text)
			}
		}
		name, local := dotted.String(), dotted.String()
		if i+1 < len(t) && t[i].text == "as" {
			local = t[i+1].text
			i += 2
		}
		for i < len(t) && !t[i].is(",") {
			i++
		}
		i++
		if name == "" {
			continue
		}
		one := imported{from.String(), name}
		if t[0].text == "import" {
			one = imported{name, ""}
		}
		m.imports[local] = append(m.imports[local], one)
	}
}

// deepestCall bounds how often a token is read: calls within more than so many others are skipped.
const deepestCall = 12

// fetchers are functions that download files.
var fetchers = []string{"download_and_cache_file", "urlretrieve", "hf_hub_download", "snapshot_download",
	"download_file"}

// statement reads the calls in a logical line that is no definition.
func (m *Module) statement(t []token, around int) {
	if r := m.regions[around]; len(t) > 2 && t[0].kind == pyName && t[1].is(":") && m.isClass(r.name) {
		m.fields[r.name] = append(m.fields[r.name], t[0].text)
	}
	depth := 0
	for i := range t {
		switch {
		case t[i].is("("):
			depth++
		case t[i].is(")"):
			depth--
		}
		if t[i].kind != pyName || depth > deepestCall {
			continue
		}
		if slices.Contains(fetchers, t[i].text) {
			m.Downloads = true
		}
		if i+1 >= len(t) || !t[i+1].is("(") {
			if t[i].text == "REMAINDER" {
				m.tolerates = true
			}
			continue
		}
		end := closing(t, i+1)
		m.call(t[:i+1], t[i+2:end], around)
	}
}

func (m *Module) isClass(name string) bool { _, ok := m.bases[name]; return ok || m.classNamed(name) }

// classNamed reports whether a region has the name of a class: it begins with a capital letter.
func (m *Module) classNamed(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != "" && last[0] >= 'A' && last[0] <= 'Z'
}

// call reads one call: the tokens before its name, and the tokens between its brackets.
func (m *Module) call(before, args []token, around int) {
	name := before[len(before)-1].text
	method := len(before) > 2 && before[len(before)-2].is(".")
	switch {
	case name == "add_argument" && method:
		m.options = append(m.options, readOption(args, around))
		return
	case strings.HasSuffix(name, "ArgumentParser"):
		m.parsers++
		m.flexible = m.flexible || strings.HasPrefix(name, "Flexible")
		for _, a := range split(args) {
			if keyword(a) == "parents" {
				m.opaque = "its parser has parents"
			}
		}
		return
	case name == "parse_known_args":
		m.tolerates = true
		return
	case name == "add_argument_group", name == "add_subparsers", name == "add_mutually_exclusive_group",
		name == "add_parser", name == "set_defaults",
		name == "print", name == "isinstance", name == "hasattr", name == "getattr", name == "setattr", name == "len",
		name == "super", name == "type":
		return
	}
	if m.given(args) {
		m.passes = append(m.passes, pass{around, dotted(before)})
	}
}

// given reports whether an argument of a call is a parser.
func (m *Module) given(args []token) bool {
	return slices.ContainsFunc(split(args), func(a []token) bool {
		if keyword(a) != "" {
			a = a[2:]
		}
		if len(a) == 1 || len(a) == 3 && a[1].is(".") {
			last := a[len(a)-1]
			return last.kind == pyName && (m.named[last.text] || parserName.MatchString(last.text))
		}
		return len(a) > 2 && a[0].kind == pyName && strings.HasSuffix(a[0].text, "ArgumentParser") && a[1].is("(") &&
			closing(a, 1) == len(a)-1
	})
}

// dotted returns the name at the end of the tokens: A.b.c.
func dotted(before []token) []string {
	var parts []string
	for i := len(before) - 1; i >= 0; i -= 2 {
		if before[i].kind != pyName || len(parts) > 8 {
			return append([]string{""}, parts...)
		}
		parts = append([]string{before[i].text}, parts...)
		if i == 0 || !before[i-1].is(".") {
			break
		}
		if i == 1 {
			return append([]string{""}, parts...)
		}
	}
	return parts
}

// readOption reads the arguments of add_argument.
func readOption(args []token, around int) Option {
	o := Option{region: around}
	for _, a := range split(args) {
		if len(a) == 0 {
			continue
		}
		key := keyword(a)
		switch {
		case a[0].is("**"):
			o.splat = true
		case a[0].is("*"):
			o.dynamic = true
		case key != "":
			o.keyword(key, a[2:])
		case len(a) == 1 && a[0].kind == pyString && !a[0].dynamic:
			o.Names = append(o.Names, a[0].text)
		default:
			o.dynamic = true
		}
	}
	return o
}

func (o *Option) keyword(key string, v []token) {
	if len(v) == 0 {
		return
	}
	last := v[len(v)-1]
	switch key {
	case "action":
		o.action = last.text
	case "nargs":
		o.nargs = last.text
	case "required":
		o.required = len(v) == 1 && v[0].text == "True"
	case "default":
		o.HasDefault = v[0].text != "None" && v[0].text != "argparse"
		if len(v) == 1 && v[0].kind == pyString && !v[0].dynamic {
			o.Default = v[0].text
		}
	case "type":
		o.typed = last.text != "str"
	case "choices":
		o.choices = texts(v)
	}
}

// texts reads a list of literal texts; nil if it is anything else.
func texts(v []token) []string {
	if len(v) < 3 || !v[0].is("[") && !v[0].is("(") && !v[0].is("{") || closing(v, 0) != len(v)-1 {
		return nil
	}
	var list []string
	for _, e := range split(v[1 : len(v)-1]) {
		if len(e) == 0 {
			continue
		}
		if len(e) != 1 || e[0].kind != pyString || e[0].dynamic {
			return nil
		}
		list = append(list, e[0].text)
	}
	return list
}

// keyword returns the name in "name=value"; "" if the argument has none.
func keyword(a []token) string {
	if len(a) > 2 && a[0].kind == pyName && a[1].is("=") {
		return a[0].text
	}
	return ""
}
