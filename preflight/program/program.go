// Package program finds the programs that a command would start, and their arguments, without running it: through
// wrappers such as env and timeout, other shells, interpreters and launchers.
package program

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/sh"
)

// Text is a command: text for sh, or words that run without a shell.
type Text struct {
	Shell string
	Argv  []string
	Place string
}

// Empty reports whether there is no command.
func (t Text) Empty() bool { return t.Shell == "" && len(t.Argv) == 0 }

// Side is the part of a benchmark to which a command belongs.
type Side string

const (
	Server  Side = "server"
	Client  Side = "client"  // the command of a benchmark with a server
	Offline Side = "offline" // the command of a benchmark without a server
)

// Program is one invocation of a program, as far as it is known beforehand.
type Program struct {
	sh.Command
	Side   Side
	Place  string // position of the text in the file
	Name   string // name of the program, without its directory
	Script string // path of a script, as written
	Module string // of python -m
	Sub    []string
	Args   []sh.Word
	Python bool
	Mended bool // fixes may change its files
}

// Read returns the programs that a command starts. It returns false if it did not understand the whole command.
func Read(t Text, s Side, vars map[string]sh.Word) ([]Program, bool) {
	var list []sh.Command
	ok := true
	if t.Argv != nil {
		list = sh.ParseArgv(t.Argv, vars)
	} else {
		list, ok = sh.Parse(t.Shell, vars)
	}
	var all []Program
	for _, one := range list {
		found, understood := started(one, s, vars, 0)
		all, ok = append(all, found...), ok && understood
	}
	for i := range all {
		all[i].Place = t.Place
	}
	return all, ok
}

// started returns the programs that a simple command starts, seen through wrappers.
func started(s sh.Command, side Side, vars map[string]sh.Word, depth int) ([]Program, bool) {
	words := s.Words
	for len(words) > 0 {
		name := path.Base(words[0].Text)
		rest := words[1:]
		switch {
		case words[0].Partial && !strings.HasPrefix(words[0].Text, sh.Ref):
			return []Program{{Command: s, Side: side}}, true
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
			return inner(s, rest, side, vars, depth)
		case (name == "uv" || name == "poetry" || name == "pipenv" || name == "pdm") && len(rest) > 0 &&
			rest[0].Text == "run":
			words = skipOptions(rest[1:], []string{"--with", "--python", "-p", "--project"})
		default:
			return []Program{identify(s, words, side)}, true
		}
	}
	return nil, true
}

// inner returns the programs that an inner shell starts.
func inner(s sh.Command, args []sh.Word, side Side, vars map[string]sh.Word, depth int) ([]Program, bool) {
	for i, a := range args {
		if !strings.HasPrefix(a.Text, "-") {
			return []Program{{Command: s, Side: side, Name: "sh", Script: a.Text, Args: args[i+1:]}}, !a.Partial
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
		var all []Program
		for _, one := range list {
			one.After, one.Maybe = append(slices.Clip(s.After), one.After...), one.Maybe || s.Maybe
			if s.Dir != "" && !path.IsAbs(one.Dir) {
				one.Dir = path.Join(s.Dir, one.Dir)
			}
			one.Lost = one.Lost || s.Lost
			found, understood := started(one, side, vars, depth+1)
			all, ok = append(all, found...), ok && understood
		}
		return all, ok
	}
	return nil, true
}

// skipOptions skips options. Those in valued take a value.
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

// identify returns the program of a command: its script, module or name, and its arguments.
func identify(s sh.Command, words []sh.Word, side Side) Program {
	p := Program{Command: s, Side: side, Name: path.Base(words[0].Text), Args: words[1:]}
	switch {
	case pythonName.MatchString(p.Name):
		p.Python = true
		p.pythonArgs()
	case slices.Contains(launchers, p.Name):
		p.launcherArgs()
	case strings.HasSuffix(words[0].Text, ".py"):
		p.Python, p.Script = true, words[0].Text
	case strings.Contains(words[0].Text, "/"):
		p.Script = words[0].Text
	case p.Name == "vllm":
		p.subcommands()
	}
	return p
}

// pythonArgs reads the options of the interpreter.
func (p *Program) pythonArgs() {
	args := p.Args
	p.Args = nil
	for i := 0; i < len(args); i++ {
		switch a := args[i].Text; {
		case a == "-m" && i+1 < len(args):
			if p.Args = args[i+2:]; !args[i+1].Partial {
				p.Module = args[i+1].Text
			}
			return
		case strings.HasPrefix(a, "-m") && len(a) > 2:
			p.Module, p.Args = a[2:], args[i+1:]
			return
		case a == "-c" || a == "-":
			return
		case a == "-W" || a == "-X":
			i++
		case strings.HasPrefix(a, "-"):
		default:
			if p.Args = args[i+1:]; !args[i].Partial || strings.HasPrefix(a, sh.Ref) {
				p.Script = a
			}
			return
		}
	}
}

// launcherArgs finds the script after the options of a launcher: the first word that can be one.
func (p *Program) launcherArgs() {
	for i, a := range p.Args {
		if strings.HasSuffix(a.Text, ".py") && !a.Partial {
			p.Python, p.Script, p.Args = true, a.Text, p.Args[i+1:]
			return
		}
		if (a.Text == "-m" || a.Text == "--module") && i+1 < len(p.Args) && !p.Args[i+1].Partial {
			p.Python, p.Module, p.Args = true, p.Args[i+1].Text, p.Args[i+2:]
			return
		}
	}
}

// subcommands reads the words before the first option: "bench serve".
func (p *Program) subcommands() {
	if len(p.Args) > 0 && isPlain(p.Args[0]) {
		p.Sub, p.Args = []string{p.Args[0].Text}, p.Args[1:]
	}
	if len(p.Sub) == 1 && p.Sub[0] == "bench" && len(p.Args) > 0 && isPlain(p.Args[0]) {
		p.Sub, p.Args = append(p.Sub, p.Args[0].Text), p.Args[1:]
	}
}

func isPlain(w sh.Word) bool { return !w.Partial && !strings.HasPrefix(w.Text, "-") }

// Title returns the name of the program in findings.
func (p *Program) Title() string {
	switch {
	case p.Module != "":
		return "python -m " + p.Module
	case p.Script != "":
		return p.Script
	case len(p.Sub) > 0:
		return p.Name + " " + strings.Join(p.Sub, " ")
	}
	return p.Name
}

// Flag is one option as it was given.
type Flag struct {
	Name   string // with its dashes, without its value
	Value  sh.Word
	Given  bool // it has a value: after "=", or in the next word, which may also be a positional argument
	Joined bool // after "="
	At     int  // index among the arguments
}

// Flags returns the options among arguments, in their order, up to "--".
func Flags(args []sh.Word) []Flag {
	var all []Flag
	for i, a := range args {
		if a.Text == "--" {
			break
		}
		if !IsFlag(a) {
			continue
		}
		f := Flag{Name: a.Text, At: i}
		if name, value, ok := strings.Cut(a.Text, "="); ok {
			f.Name, f.Value, f.Given, f.Joined = name, sh.Word{Text: value, Partial: a.Partial}, true, true
		} else if i+1 < len(args) && !IsFlag(args[i+1]) {
			f.Value, f.Given = args[i+1], true
		}
		all = append(all, f)
	}
	return all
}

var negative = regexp.MustCompile(`^-\d+$|^-\d*\.\d+$`)

// IsFlag reports whether argparse takes the word for an option.
func IsFlag(w sh.Word) bool {
	t := w.Text
	return len(t) > 1 && t[0] == '-' && !negative.MatchString(t) &&
		!strings.ContainsAny(strings.SplitN(t, "=", 2)[0], " \t") &&
		!strings.HasPrefix(t, "-$")
}

// Value returns the value of the last of the named options; false if none is given.
func (p *Program) Value(names ...string) (sh.Word, bool) {
	var found sh.Word
	ok := false
	for _, f := range Flags(p.Args) {
		if f.Given && slices.Contains(names, Canonical(f.Name)) {
			found, ok = f.Value, true
		}
	}
	return found, ok
}

// Has reports whether an option is given.
func (p *Program) Has(names ...string) bool {
	return slices.ContainsFunc(Flags(p.Args), func(f Flag) bool { return slices.Contains(names, Canonical(f.Name)) })
}

// Canonical returns an option with hyphens in place of underscores.
func Canonical(name string) string {
	dashes := len(name) - len(strings.TrimLeft(name, "-"))
	return name[:dashes] + strings.ReplaceAll(name[dashes:], "_", "-")
}

// Resolve returns a path of a command relative to the working directory. It returns false if the path is not known, or
// is not below that.
func (p *Program) Resolve(name string) (string, bool) {
	switch {
	case strings.HasPrefix(name, sh.WorkDir):
		return path.Clean("./" + strings.TrimPrefix(name, sh.WorkDir)), true
	case path.IsAbs(name), strings.HasPrefix(name, "~"), p.Lost, path.IsAbs(p.Dir):
		return "", false
	}
	return path.Join(p.Dir, name), true
}

// Made reports whether an earlier command could have made a file.
func Made(p *Program, name string) bool {
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

// Loads reports whether a program without a server loads a model: a benchmark of the engine itself.
func (p *Program) Loads() bool {
	if p.Name == "vllm" {
		return len(p.Sub) == 2 && p.Sub[1] != "serve" || len(p.Sub) == 1 && p.Sub[0] == "serve"
	}
	return p.Python && (p.Script != "" || p.Module != "")
}

// ModelName returns the model in the arguments of a program.
func (p *Program) ModelName() (sh.Word, bool) {
	if w, ok := p.Value("--model", "--model-path", "-m"); ok {
		return w, true
	}
	if p.Name == "vllm" && len(p.Sub) == 1 && p.Sub[0] == "serve" {
		for i, w := range p.Args {
			if IsFlag(w) {
				continue
			}
			if i == 0 || !IsFlag(p.Args[i-1]) || strings.Contains(p.Args[i-1].Text, "=") {
				return w, true
			}
		}
	}
	return sh.Word{}, false
}

// Number returns the value of an option as a number; 0 if it is not given or not known.
func (p *Program) Number(names ...string) float64 {
	w, ok := p.Value(names...)
	if !ok || w.Partial {
		return 0
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(w.Text), 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Ranks returns the number of devices over which the weights are spread.
func (p *Program) Ranks() int {
	tp := max(p.Number("--tensor-parallel-size", "-tp", "--tp", "--tp-size"), 1)
	pp := max(p.Number("--pipeline-parallel-size", "-pp", "--pp", "--pp-size"), 1)
	return int(min(tp*pp, 1<<20))
}

// Usual returns the part of a device's memory that an engine takes by default: that of vLLM, and nearly all for others.
func (p *Program) Usual() float64 {
	if p.Name == "vllm" || strings.HasPrefix(p.Module, "vllm.") ||
		strings.HasPrefix(path.Base(p.Script), "benchmark_") {
		return 0.9
	}
	return 0.97
}

// IsSGLang reports whether a program is a part of SGLang.
func (p *Program) IsSGLang() bool { return strings.HasPrefix(p.Module, "sglang.") }
