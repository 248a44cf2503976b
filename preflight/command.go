package preflight

import (
	"path"
	"regexp"
	"slices"
	"strings"
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
	simple
	side   side
	fill   bool   // of the command that fills caches
	name   string // of the program itself, without its directory
	script string // path of a script, as written
	module string // of python -m
	sub    []string
	args   []word
	python bool
	mended bool // recipes may change its files
}

// programs are the programs that a command starts. False: the command was not understood as a whole.
func programs(t Text, s side, vars map[string]word) ([]program, bool) {
	var list []simple
	ok := true
	if t.Argv != nil {
		list = parseArgv(t.Argv, vars)
	} else {
		list, ok = parseShell(t.Shell, vars)
	}
	var all []program
	for _, one := range list {
		found, understood := started(one, s, vars, 0)
		all, ok = append(all, found...), ok && understood
	}
	return all, ok
}

// started is what a simple command starts, through all programs that only start another one.
func started(s simple, of side, vars map[string]word, depth int) ([]program, bool) {
	words := s.words
	for len(words) > 0 {
		name := path.Base(words[0].text)
		rest := words[1:]
		switch {
		case words[0].partial && !strings.HasPrefix(words[0].text, Ref):
			return []program{{simple: s, side: of}}, true
		case slices.Contains([]string{"exec", "command", "nohup", "time", "setsid"}, name):
			words = skipOptions(rest, nil)
		case name == "env":
			words = skipOptions(rest, []string{"-u", "-C", "--unset", "--chdir"})
			for len(words) > 0 && strings.Contains(words[0].text, "=") {
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
			rest[0].text == "run":
			words = skipOptions(rest[1:], []string{"--with", "--python", "-p", "--project"})
		default:
			return []program{identify(s, words, of)}, true
		}
	}
	return nil, true
}

// inner is what a shell of the command's own runs.
func inner(s simple, args []word, of side, vars map[string]word, depth int) ([]program, bool) {
	for i, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			return []program{{simple: s, side: of, name: "sh", script: a.text, args: args[i+1:]}}, !a.partial
		}
		if strings.HasPrefix(a.text, "--") || !strings.Contains(a.text, "c") {
			continue
		}
		if i+1 >= len(args) || depth > 3 {
			return nil, false
		}
		text := args[i+1]
		list, ok := parseShell(text.text, map[string]word{"\x00any": {}})
		ok = ok && !text.partial
		var all []program
		for _, one := range list {
			one.after, one.maybe = append(slices.Clip(s.after), one.after...), one.maybe || s.maybe
			if s.dir != "" && !path.IsAbs(one.dir) {
				one.dir = path.Join(s.dir, one.dir)
			}
			one.lost = one.lost || s.lost
			found, understood := started(one, of, vars, depth+1)
			all, ok = append(all, found...), ok && understood
		}
		return all, ok
	}
	return nil, true
}

// skipOptions passes over options; those that are named take a value.
func skipOptions(words []word, valued []string) []word {
	for len(words) > 0 && strings.HasPrefix(words[0].text, "-") && len(words[0].text) > 1 {
		takes := slices.Contains(valued, words[0].text)
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
func identify(s simple, words []word, of side) program {
	p := program{simple: s, side: of, name: path.Base(words[0].text), args: words[1:]}
	switch {
	case pythonName.MatchString(p.name):
		p.python = true
		p.pythonArgs()
	case slices.Contains(launchers, p.name):
		p.launcherArgs()
	case strings.HasSuffix(words[0].text, ".py"):
		p.python, p.script = true, words[0].text
	case strings.Contains(words[0].text, "/"):
		p.script = words[0].text
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
		switch a := args[i].text; {
		case a == "-m" && i+1 < len(args):
			if p.args = args[i+2:]; !args[i+1].partial {
				p.module = args[i+1].text
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
			if p.args = args[i+1:]; !args[i].partial || strings.HasPrefix(a, Ref) {
				p.script = a
			}
			return
		}
	}
}

// launcherArgs finds the script behind the options of a launcher: the first word that is one.
func (p *program) launcherArgs() {
	for i, a := range p.args {
		if strings.HasSuffix(a.text, ".py") && !a.partial {
			p.python, p.script, p.args = true, a.text, p.args[i+1:]
			return
		}
		if (a.text == "-m" || a.text == "--module") && i+1 < len(p.args) && !p.args[i+1].partial {
			p.python, p.module, p.args = true, p.args[i+1].text, p.args[i+2:]
			return
		}
	}
}

// subcommands takes the words before the first option: "bench serve".
func (p *program) subcommands() {
	if len(p.args) > 0 && isPlain(p.args[0]) {
		p.sub, p.args = []string{p.args[0].text}, p.args[1:]
	}
	if len(p.sub) == 1 && p.sub[0] == "bench" && len(p.args) > 0 && isPlain(p.args[0]) {
		p.sub, p.args = append(p.sub, p.args[0].text), p.args[1:]
	}
}

func isPlain(w word) bool { return !w.partial && !strings.HasPrefix(w.text, "-") }

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
	value  word
	given  bool // it has a value: after "=", or in the next word, which may as well be a positional argument
	joined bool // after "="
	at     int  // index among the arguments
}

// flags are the options among arguments, in their order, up to "--".
func flags(args []word) []flag {
	var all []flag
	for i, a := range args {
		if a.text == "--" {
			break
		}
		if !isFlag(a) {
			continue
		}
		f := flag{name: a.text, at: i}
		if name, value, ok := strings.Cut(a.text, "="); ok {
			f.name, f.value, f.given, f.joined = name, word{text: value, partial: a.partial}, true, true
		} else if i+1 < len(args) && !isFlag(args[i+1]) {
			f.value, f.given = args[i+1], true
		}
		all = append(all, f)
	}
	return all
}

var negative = regexp.MustCompile(`^-\d+$|^-\d*\.\d+$`)

// isFlag reports whether argparse takes the word for an option.
func isFlag(w word) bool {
	t := w.text
	return len(t) > 1 && t[0] == '-' && !negative.MatchString(t) &&
		!strings.ContainsAny(strings.SplitN(t, "=", 2)[0], " \t") &&
		!strings.HasPrefix(t, "-$")
}

// value is the value of the last of the named options; false when none is given.
func (p *program) value(names ...string) (word, bool) {
	var found word
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
