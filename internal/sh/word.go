package sh

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// runtimeVars are variables that benchgraph or the shell sets at run time.
var runtimeVars = map[string]bool{
	"OUT": true, "PORT": true, "CUDA_VISIBLE_DEVICES": true, "PATH": true, "HOME": true, "LANG": true,
	"BENCHGRAPH_PROC": true, "BENCHGRAPH_SEED": true, "PWD": true, "OLDPWD": true, "IFS": true, "PPID": true,
	"OPTARG": true, "OPTIND": true, "PS1": true, "PS2": true, "PS4": true, "SHLVL": true, "_": true,
}

// variables are the known values of variables, by name.
type variables map[string]Word

// anything is a name in variables whose presence means that any variable may be set.
const anything = "\x00any"

// ParseArgv parses a command in list form: one simple command, in which benchgraph replaces its own variables.
func ParseArgv(argv []string, vars map[string]Word) []Command {
	var is Command
	for _, a := range argv {
		var w Word
		w.Text = Substitute(a, func(name string) (string, bool) {
			value := variables(vars).value(name, false)
			w.Partial = w.Partial || value.Partial
			return value.Text, true
		})
		is.Words = append(is.Words, w)
	}
	return []Command{is}
}

// assign records the arguments of a command that sets variables.
func (v variables) assign(args []Word) {
	for _, w := range args {
		name, value, ok := strings.Cut(w.Text, "=")
		if !syntax.ValidName(name) {
			continue
		}
		if _, known := v[name]; ok || !known {
			v[name] = Word{Text: value, Partial: w.Partial || !ok}
		}
	}
}

// value returns the value of a variable. If must is set, it records an unset variable in Unset.
func (v variables) value(name string, must bool) Word {
	value, set := v[name]
	switch {
	case name == "SRC" || name == "SITE":
		return Word{Text: WorkDir}
	case set:
		return Word{Text: value.Text, Partial: value.Partial}
	}
	w := Word{Text: "$" + name, Partial: true}
	if _, any := v[anything]; must && !any && !runtimeVars[name] {
		w.Unset = []string{name}
	}
	return w
}

// word evaluates a word; nil is the empty word.
func (v variables) word(is *syntax.Word) (Word, error) {
	var b builder
	if is != nil {
		if err := v.parts(&b, is.Parts, false); err != nil {
			return Word{}, err
		}
	}
	b.word.Text = b.text.String()
	return b.word, nil
}

// builder builds a word from its parts.
type builder struct {
	word Word // without its text
	text strings.Builder
}

// parts adds the parts of a word or of a double-quoted string.
func (v variables) parts(b *builder, parts []syntax.WordPart, quoted bool) error {
	for _, part := range parts {
		switch is := part.(type) {
		case *syntax.Lit:
			b.literal(is.Value, quoted)
		case *syntax.SglQuoted:
			b.add(Word{Text: is.Value, Partial: is.Dollar && strings.Contains(is.Value, `\`)})
		case *syntax.DblQuoted:
			if err := v.parts(b, is.Parts, true); err != nil {
				return err
			}
		case *syntax.ParamExp:
			b.add(v.expand(is))
		case *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ExtGlob:
			b.add(Word{Partial: true})
		default: // such as process substitution
			return errForeign
		}
	}
	return nil
}

func (b *builder) add(w Word) {
	b.text.WriteString(w.Text)
	b.word.Partial, b.word.Unset = b.word.Partial || w.Partial, append(b.word.Unset, w.Unset...)
}

// literal adds text in which a backslash quotes.
func (b *builder) literal(text string, quoted bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c != '\\' || i+1 == len(text):
			glob := !quoted && (c == '*' || c == '?' || c == '[' && b.text.Len() > 0)
			b.word.Partial = b.word.Partial || glob
			b.text.WriteByte(c)
		case text[i+1] == '\n':
			i++
		case quoted && strings.IndexByte("$`\"\\", text[i+1]) < 0:
			b.text.WriteByte(c)
		default:
			i++
			b.text.WriteByte(text[i])
		}
	}
}

// expand returns the value of $NAME or ${NAME…}.
func (v variables) expand(is *syntax.ParamExp) Word {
	more := is.Excl || is.Length || is.Width || is.Index != nil || is.Slice != nil || is.Repl != nil || is.Names != 0
	if more || is.Param == nil || !syntax.ValidName(is.Param.Value) {
		return Word{Partial: true}
	}
	name := is.Param.Value
	if is.Exp == nil {
		return v.value(name, true)
	}
	if is.Exp.Op != syntax.DefaultUnset && is.Exp.Op != syntax.DefaultUnsetOrNull {
		return Word{Partial: true}
	}
	instead, err := v.word(is.Exp.Word)
	if _, set := v[name]; set || runtimeVars[name] || err != nil || instead.Partial {
		return v.value(name, false)
	}
	return instead
}
