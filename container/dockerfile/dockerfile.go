// Package dockerfile finds the base images of a Dockerfile, replaces their names, and lists the files that a builder
// gets with the Dockerfile.
package dockerfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// MaxSize is the largest Dockerfile that is read, in bytes.
const MaxSize = 1 << 20

// word is a part of an instruction between blanks.
type word struct {
	text     string
	from, to int
}

var (
	directive = lazyregexp.New(`^#\s*([A-Za-z]+)\s*=\s*(\S.*?)\s*$`)
	heredoc   = lazyregexp.New(`^[0-9]*<<(-?)["']?([^<"']+)["']?$`)
	variable  = lazyregexp.New(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])([^{}$]*))?\})`)
	outside   = lazyregexp.New(`^(?:[a-zA-Z][a-zA-Z0-9+.-]*://|git@|\$)`)
)

// Parse finds the images that a Dockerfile uses. args are the values for ARG before the first FROM. A construct that
// hides an image is an error with its line.
func Parse(text []byte, args map[string]string) (*File, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("over %d bytes", MaxSize)
	}
	p := &parser{File: File{text: text}, args: args, values: map[string]string{}, escape: '\\'}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		p.at = len(byteOrderMark)
	}
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("line %d of the Dockerfile: %w", p.line, err)
	}
	if len(p.stages) == 0 {
		return nil, errors.New("the Dockerfile has no FROM")
	}
	return &p.File, nil
}

// byteOrderMark is what some editors write at the beginning of a text.
const byteOrderMark = "\ufeff"

type parser struct {
	File
	args   map[string]string // given values
	values map[string]string // values of ARG before the first FROM
	escape byte
	at     int // position of the next byte
	line   int // line of the instruction, from 1
	next   int // number of lines before at
}

// readLine reads the next physical line, without its end.
func (p *parser) readLine() (text string, from int, ok bool) {
	if p.at >= len(p.text) {
		return "", 0, false
	}
	from = p.at
	rest := p.text[from:]
	end := slices.Index(rest, '\n')
	if end < 0 {
		end, p.at = len(rest), len(p.text)
	} else {
		p.at += end + 1
	}
	p.next++
	return strings.TrimSuffix(string(rest[:end]), "\r"), from, true
}

func (p *parser) parse() error {
	if err := p.directives(); err != nil {
		return err
	}
	for {
		words, ok := p.instruction()
		if !ok {
			return nil
		}
		if len(words) == 0 {
			continue
		}
		if err := p.understand(words); err != nil {
			return err
		}
	}
}

// directives reads the parser directives in the comments at the top.
func (p *parser) directives() error {
	seen := map[string]bool{}
	for {
		before, line := p.at, p.next
		text, from, ok := p.readLine()
		match := directive().FindStringSubmatchIndex(text)
		if !ok || match == nil || seen[strings.ToLower(text[match[2]:match[3]])] {
			p.at, p.next = before, line
			return nil
		}
		p.line = p.next
		name, value := strings.ToLower(text[match[2]:match[3]]), text[match[4]:match[5]]
		switch seen[name] = true; name {
		case "syntax":
			ref, _, _ := strings.Cut(value, " ")
			p.mentions = append(p.mentions, mention{ref, from + match[4], from + match[4] + len(ref)})
		case "escape":
			if value != "`" && value != `\` {
				return fmt.Errorf("escape=%s: want \\ or `", value)
			}
			p.escape = value[0]
		case "check":
		default: // an ordinary comment ends the directives
			p.at, p.next = before, line
			return nil
		}
	}
}

// instruction returns the words of the next instruction, with its continuation lines. For a comment or an empty line
// it returns no words.
func (p *parser) instruction() (words []word, ok bool) {
	p.line = p.next + 1
	for first := true; ; first = false {
		text, from, more := p.readLine()
		if !more {
			return words, !first
		}
		trimmed := strings.TrimSpace(text)
		if strings.HasPrefix(trimmed, "#") || trimmed == "" {
			if first {
				return nil, true
			}
			continue // also skip comments between continued lines
		}
		trimmed = strings.TrimRight(text, " \t")
		last := len(trimmed) - 1
		continued := trimmed[last] == p.escape && (last == 0 || trimmed[last-1] != p.escape)
		if continued {
			text = trimmed[:last]
		}
		words = append(words, split(text, from)...)
		if !continued {
			return words, true
		}
	}
}

// split splits a line into words.
func split(text string, from int) (words []word) {
	for i := 0; i < len(text); {
		start := i
		for i < len(text) && text[i] != ' ' && text[i] != '\t' {
			i++
		}
		if i > start {
			words = append(words, word{text[start:i], from + start, from + i})
		}
		for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
			i++
		}
	}
	return words
}

func (p *parser) understand(words []word) error {
	name, rest := strings.ToUpper(words[0].text), words[1:]
	switch name {
	case "ARG":
		if len(p.stages) == 0 {
			return p.arg(rest)
		}
	case "FROM":
		return p.base(rest)
	case "COPY", "ADD", "RUN":
		p.skipHeredocs(rest)
		return p.sources(name, rest)
	}
	return nil
}

// arg handles ARG NAME[=VALUE]...
func (p *parser) arg(words []word) error {
	for _, w := range words {
		if strings.HasPrefix(w.text, "#") {
			return nil
		}
		name, value, has := strings.Cut(w.text, "=")
		if strings.ContainsAny(value, `"'`) {
			bare := strings.Trim(value, value[:1])
			if len(value) != len(bare)+2 || strings.ContainsAny(bare, `"'\`) {
				return fmt.Errorf("ARG %s: a value of several words or with quotes inside cannot be part of an "+
					"image's name", name)
			}
			value = bare
		}
		if given, ok := p.args[name]; ok {
			p.values[name] = given
		} else if has {
			value, err := p.expand(value)
			if err != nil {
				return fmt.Errorf("ARG %s: %w", name, err)
			}
			p.values[name] = value
		}
	}
	return nil
}

// expand replaces arguments by their values.
func (p *parser) expand(text string) (string, error) {
	missing := ""
	out := variable().ReplaceAllStringFunc(text, func(v string) string {
		m := variable().FindStringSubmatch(v)
		name, how, other := m[1]+m[2], m[3], m[4]
		value, set := p.values[name]
		set = set && (value != "" || !strings.HasPrefix(how, ":"))
		switch {
		case strings.HasSuffix(how, "-") && !set, strings.HasSuffix(how, "+") && set:
			return other
		case strings.HasSuffix(how, "+"):
			return ""
		case !set:
			missing = name
		}
		return value
	})
	switch {
	case strings.ContainsAny(variable().ReplaceAllString(text, ""), "$\\"):
		return "", fmt.Errorf("%q: it cannot be told what this stands for", text)
	case missing != "":
		return "", fmt.Errorf("%q: argument %s has no value; give it one (args)", text, missing)
	}
	return out, nil
}

// base handles FROM [--platform=P] IMAGE [AS STAGE].
func (p *parser) base(words []word) error {
	for len(words) > 0 && strings.HasPrefix(words[0].text, "--") {
		words = words[1:]
	}
	if len(words) != 1 && !(len(words) == 3 && strings.EqualFold(words[1].text, "AS")) {
		return fmt.Errorf("want FROM IMAGE or FROM IMAGE AS STAGE")
	}
	w := words[0]
	w.text = unquoted(w.text)
	ref, err := p.expand(w.text)
	if err != nil {
		return err
	}
	if ref == "" || strings.ContainsAny(ref, `"' `) {
		return fmt.Errorf("FROM %s: names no image", w.text)
	}
	begun := stage{base: ref}
	if at := p.find(ref); at >= 0 {
		begun.base = p.stages[at].base
	} else if ref == "scratch" {
		begun.base = ""
	} else {
		p.mentions = append(p.mentions, mention{ref, w.from, w.to})
	}
	if len(words) == 3 {
		begun.name = strings.ToLower(words[2].text)
	}
	p.stages = append(p.stages, begun)
	return nil
}

func unquoted(text string) string {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

// sources handles the flags of COPY, ADD and RUN, and remote sources of ADD.
func (p *parser) sources(name string, words []word) error {
	for len(words) > 0 && strings.HasPrefix(words[0].text, "--") {
		w := words[0]
		words = words[1:]
		flag, value, _ := strings.Cut(w.text[2:], "=")
		start := w.to - len(value)
		switch {
		case flag == "from":
			if err := p.source(value, start); err != nil {
				return err
			}
		case flag == "mount":
			for part := range strings.SplitSeq(value, ",") {
				if ref, ok := strings.CutPrefix(part, "from="); ok {
					if err := p.source(ref, start+len("from=")); err != nil {
						return err
					}
				}
				start += len(part) + 1
			}
		}
	}
	if name == "ADD" && p.Outward == "" {
		for _, w := range words {
			if text := strings.Trim(w.text, `"',[]`); outside().MatchString(text) {
				p.Outward = fmt.Sprintf("line %d: ADD %s", p.line, text)
				break
			}
		}
	}
	return nil
}

// source handles the value of --from: a stage, by name or number, or an image.
func (p *parser) source(ref string, from int) error {
	switch {
	case ref == "" || ref == "scratch" || p.find(ref) >= 0 || strings.Trim(ref, "0123456789") == "":
		return nil
	case strings.ContainsAny(ref, `$"'\`):
		return fmt.Errorf("--from=%s: it cannot be told which image this is", ref)
	}
	p.mentions = append(p.mentions, mention{ref, from, from + len(ref)})
	return nil
}

// skipHeredocs skips the heredocs that follow an instruction. A heredoc without an end only looked like one.
func (p *parser) skipHeredocs(words []word) {
	for _, w := range words {
		m := heredoc().FindStringSubmatch(w.text)
		if m == nil {
			continue
		}
		at, next := p.at, p.next
		for {
			text, _, ok := p.readLine()
			if !ok {
				p.at, p.next = at, next
				break
			}
			if m[1] != "" {
				text = strings.TrimLeft(text, "\t")
			}
			if text == m[2] {
				break
			}
		}
	}
}
