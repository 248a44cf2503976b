package preflight

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/sh"
)

// side says which of a benchmark's commands something belongs to.
type side string

const (
	server  side = "server"
	client  side = "client"  // the command of a benchmark with a server
	offline side = "offline" // the command of one without
)

// program is one invocation of a program, as far as it is known before the program runs.
type program struct {
	sh.Command
	side   side
	fill   bool   // of the command that fills caches
	name   string // of the program itself, without its directory
	script string // path of a script, as written
	module string // of python -m
	sub    []string
	args   []sh.Word
	python bool
	mended bool // recipes may change its files
}

// programs are the programs that a command starts. False: the command was not understood as a whole.
func programs(t Text, s side, vars map[string]sh.Word) ([]program, bool) {
	var list []sh.Command
	ok := true
	if t.Argv != nil {
		list = sh.ParseArgv(t.Argv, vars)
	} else {
		list, ok = sh.Parse(t.Shell, vars)
	}
	var all []program
	for _, one := range list {
		found, understood := started(one, s, vars, 0)
		all, ok = append(all, found...), ok && understood
	}
	return all, ok
}

// started is what a simple command starts, through all programs that only start another one.
func started(s sh.Command, of side, vars map[string]sh.Word, depth int) ([]program, bool) {
	words := s.Words
	for len(words) > 0 {
		name := path.Base(words[0].Text)
		rest := words[1:]
		switch {
		case words[0].Partial && !strings.HasPrefix(words[0].Text, sh.Ref):
			return []program{{Command: s, side: of}}, true
		case slices.Contains([]string{"exec", "command", "nohup", "time", "setsid"}, name):
			words = skipOptions(rest, nil)
		case name == "env":
			words = skipOptions(rest, []string{"-u", "-C", "--unset", "--chdir"})
			for len(words) > 0 && strings.Contains(words[0].Text, "=") {
				words = words[1:]
			}
		case name == "nice", name == "ionice", name == "chrt", name == "stdbuf", name == "numactl", name == "sudo":
			words = skipOptions(rest, []string{"-n", "-c", "-p", "-i", "-o", "-e", "-N", "-m", "-C", "-u", "-g",
				"--cpunodebind", "--membind", "--physcpubind"})
		case name == "timeout", name == "taskset":
			words = skipOptions(rest, []string{"-s", "-k", "--signal", "--kill-after"})
			if len(words) > 0 {
				words = words[1:]
			}
		case slices.Contains([]string{"sh", "bash", "dash", "zsh"}, name):
			return inner(s, rest, of, vars, depth)
		case (name == "uv" || name == "poetry" || name == "pipenv" || name == "pdm") && len(rest) > 0 &&
			rest[0].Text == "run":
			words = skipOptions(rest[1:], []string{"--with", "--python", "-p", "--project"})
		default:
			return []program{identify(s, words, of)}, true
		}
	}
	return nil, true
}

// inner is what a shell of the command's own runs.
func inner(s sh.Command, args []sh.Word, of side, vars map[string]sh.Word, depth int) ([]program, bool) {
	for i, a := range args {
		if !strings.HasPrefix(a.Text, "-") {
			return []program{{Command: s, side: of, name: "sh", script: a.Text, args: args[i+1:]}}, !a.Partial
		}
		if strings.HasPrefix(a.Text, "--") || !strings.Contains(a.Text, "c") {
			continue
		}
		if i+1 >= len(args) || depth > 3 {
			return nil, false
		}
		text := args[i+1]
		list, ok := sh.Parse(text.Text, map[string]sh.Word{"\x00any": {}})
		ok = ok && !text.Partial
		var all []program
		for _, one := range list {
			one.After, one.Maybe = append(slices.Clip(s.After), one.After...), one.Maybe || s.Maybe
			if s.Dir != "" && !path.IsAbs(one.Dir) {
				one.Dir = path.Join(s.Dir, one.Dir)
			}
			one.Lost = one.Lost || s.Lost
			found, understood := started(one, of, vars, depth+1)
			all, ok = append(all, found...), ok && understood
		}
		return all, ok
	}
	return nil, true
}

// skipOptions passes over options; those that are named take a value.
func skipOptions(words []sh.Word, valued []string) []sh.Word {
	for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") && len(words[0].Text) > 1 {
		takes := slices.Contains(valued, words[0].Text)
		if words = words[1:]; takes && len(words) > 0 {
			words = words[1:]
		}
	}
	return words
}

var (
	pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*$`)
	launchers  = []string{"torchrun", "accelerate", "deepspeed"}
)

// identify says which script, module or program a command starts, and with what.
func identify(s sh.Command, words []sh.Word, of side) program {
	p := program{Command: s, side: of, name: path.Base(words[0].Text), args: words[1:]}
	switch {
	case pythonName.MatchString(p.name):
		p.python = true
		p.pythonArgs()
	case slices.Contains(launchers, p.name):
		p.launcherArgs()
	case strings.HasSuffix(words[0].Text, ".py"):
		p.python, p.script = true, words[0].Text
	case strings.Contains(words[0].Text, "/"):
		p.script = words[0].Text
	case p.name == "vllm":
		p.subcommands()
	}
	return p
}

// pythonArgs reads the interpreter's own options.
func (p *program) pythonArgs() {
	args := p.args
	p.args = nil
	for i := 0; i < len(args); i++ {
		switch a := args[i].Text; {
		case a == "-m" && i+1 < len(args):
			if p.args = args[i+2:]; !args[i+1].Partial {
				p.module = args[i+1].Text
			}
			return
		case strings.HasPrefix(a, "-m") && len(a) > 2:
			p.module, p.args = a[2:], args[i+1:]
			return
		case a == "-c" || a == "-":
			return
		case a == "-W" || a == "-X":
			i++
		case strings.HasPrefix(a, "-"):
		default:
			if p.args = args[i+1:]; !args[i].Partial || strings.HasPrefix(a, sh.Ref) {
				p.script = a
			}
			return
		}
	}
}

// launcherArgs finds the script behind the options of a launcher: the first word that is one.
func (p *program) launcherArgs() {
	for i, a := range p.args {
		if strings.HasSuffix(a.Text, ".py") && !a.Partial {
			p.python, p.script, p.args = true, a.Text, p.args[i+1:]
			return
		}
		if (a.Text == "-m" || a.Text == "--module") && i+1 < len(p.args) && !p.args[i+1].Partial {
			p.python, p.module, p.args = true, p.args[i+1].Text, p.args[i+2:]
			return
		}
	}
}

// subcommands takes the words before the first option: "bench serve".
func (p *program) subcommands() {
	if len(p.args) > 0 && isPlain(p.args[0]) {
		p.sub, p.args = []string{p.args[0].Text}, p.args[1:]
	}
	if len(p.sub) == 1 && p.sub[0] == "bench" && len(p.args) > 0 && isPlain(p.args[0]) {
		p.sub, p.args = append(p.sub, p.args[0].Text), p.args[1:]
	}
}

func isPlain(w sh.Word) bool { return !w.Partial && !strings.HasPrefix(w.Text, "-") }

// title returns the name of the program in findings.
func (p *program) title() string {
	switch {
	case p.module != "":
		return "python -m " + p.module
	case p.script != "":
		return p.script
	case len(p.sub) > 0:
		return p.name + " " + strings.Join(p.sub, " ")
	}
	return p.name
}

// flag is one option as it was given.
type flag struct {
	name   string // with its dashes, without its value
	value  sh.Word
	given  bool // it has a value: after "=", or in the next word, which may as well be a positional argument
	joined bool // after "="
	at     int  // index among the arguments
}

// flags are the options among arguments, in their order, up to "--".
func flags(args []sh.Word) []flag {
	var all []flag
	for i, a := range args {
		if a.Text == "--" {
			break
		}
		if !isFlag(a) {
			continue
		}
		f := flag{name: a.Text, at: i}
		if name, value, ok := strings.Cut(a.Text, "="); ok {
			f.name, f.value, f.given, f.joined = name, sh.Word{Text: value, Partial: a.Partial}, true, true
		} else if i+1 < len(args) && !isFlag(args[i+1]) {
			f.value, f.given = args[i+1], true
		}
		all = append(all, f)
	}
	return all
}

var negative = regexp.MustCompile(`^-\d+$|^-\d*\.\d+$`)

// isFlag reports whether argparse takes the word for an option.
func isFlag(w sh.Word) bool {
	t := w.Text
	return len(t) > 1 && t[0] == '-' && !negative.MatchString(t) &&
		!strings.ContainsAny(strings.SplitN(t, "=", 2)[0], " \t") &&
		!strings.HasPrefix(t, "-$")
}

// value is the value of the last of the named options; false when none is given.
func (p *program) value(names ...string) (sh.Word, bool) {
	var found sh.Word
	ok := false
	for _, f := range flags(p.args) {
		if f.given && slices.Contains(names, canonical(f.name)) {
			found, ok = f.value, true
		}
	}
	return found, ok
}

// has reports whether an option is given.
func (p *program) has(names ...string) bool {
	return slices.ContainsFunc(flags(p.args), func(f flag) bool { return slices.Contains(names, canonical(f.name)) })
}

// canonical is an option with hyphens for underscores.
func canonical(name string) string {
	dashes := len(name) - len(strings.TrimLeft(name, "-"))
	return name[:dashes] + strings.ReplaceAll(name[dashes:], "_", "-")
}
