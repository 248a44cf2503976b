// Package cli reads a command line: a table of commands, from which parsing, help and completion come.
//
// Flags are written with one dash or two, before or after other arguments; "--" ends them. The error for an unknown
// word suggests the nearest known word.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/benchgraph/benchgraph/internal/nearest"
)

// Command is one row of the table.
type Command struct {
	Name    string
	Args    string // arguments after the flags, in the words of help: "ADDR", "[PLANFILE]"
	Min     int    // least number of positional arguments
	Max     int    // -1: any number
	Summary string // one line, for the list of commands
	Long    string // more, for the command's own help; may be empty
	Flags   func(*flag.FlagSet)
	Run     func(ctx context.Context, args []string) error
}

// Table is a program: its commands and the flags that all of them have.
type Table struct {
	Program  string
	Version  string // for the manual page
	Summary  string
	Global   func(*flag.FlagSet)
	Commands []Command // in the order in which help lists them
	Footer   string    // end of the help
	// placeholders of arguments and flags, such as ADDRESS, for which completion -words lists values
	Words []string
}

// UsageError is a mistake of the command line, with its remedy.
type UsageError struct {
	Message string
	Remedy  string
}

func (e *UsageError) Error() string { return e.Message }

func usage(remedy, format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// Run runs the command that args name. Requested help is written to help. The error is a *UsageError if the command
// line is wrong, else the command's own.
func (t *Table) Run(ctx context.Context, args []string, help io.Writer) error {
	if len(args) == 1 && (args[0] == "-version" || args[0] == "--version") {
		args = []string{"version"}
	}
	global := flagSet(t.Global)
	rest, err := parse(global, args, false)
	switch {
	case errors.Is(err, flag.ErrHelp), err == nil && len(rest) == 0:
		return t.help(help)
	case err != nil:
		return t.explain(err, "")
	}
	name, rest := rest[0], rest[1:]
	if name == "help" {
		return t.runHelp(help, rest)
	}
	c, err := t.command(name)
	if err != nil {
		return err
	}
	positional, err := parse(t.flagsOf(c, global), rest, true)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return t.helpOf(help, c)
	case err != nil:
		return t.explain(err, c.Name)
	case len(positional) < c.Min:
		return usage(t.try(c.Name), "%s needs %s", c.Name, c.Args)
	case c.Max >= 0 && len(positional) > c.Max:
		return usage(t.try(c.Name), "%s: unexpected argument %q", c.Name, positional[c.Max])
	}
	return c.Run(ctx, positional)
}

func (t *Table) runHelp(w io.Writer, args []string) error {
	if len(args) == 0 {
		return t.help(w)
	}
	c, err := t.command(args[0])
	if err != nil {
		return err
	}
	return t.helpOf(w, c)
}

func (t *Table) try(command string) string {
	if command == "" {
		return fmt.Sprintf("try %s -help", t.Program)
	}
	return fmt.Sprintf("try %s help %s", t.Program, command)
}

func (t *Table) command(name string) (*Command, error) {
	names := []string{"help"}
	for i := range t.Commands {
		if t.Commands[i].Name == name {
			return &t.Commands[i], nil
		}
		names = append(names, t.Commands[i].Name)
	}
	return nil, usage(t.try(""), "there is no command %q%s", name, Suggest(name, names))
}

// flagsOf returns a command's flags, and the global ones whose names the command does not use itself.
func (t *Table) flagsOf(c *Command, global *flag.FlagSet) *flag.FlagSet {
	fs := flagSet(c.Flags)
	global.VisitAll(func(f *flag.Flag) {
		if fs.Lookup(f.Name) == nil {
			fs.Var(f.Value, f.Name, f.Usage)
		}
	})
	return fs
}

func flagSet(define func(*flag.FlagSet)) *flag.FlagSet {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if define != nil {
		define(fs)
	}
	return fs
}

// unknownFlag is the error for a flag that is not defined.
type unknownFlag struct {
	name  string
	known []string
}

func (e *unknownFlag) Error() string {
	return fmt.Sprintf("there is no flag -%s%s", e.name, Suggest("-"+e.name, e.known))
}

// parse reads flags and returns the other arguments. If everywhere is false, it ends at the first argument that is no
// flag, and returns that argument and the rest.
func parse(fs *flag.FlagSet, args []string, everywhere bool) ([]string, error) {
	var positional []string
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--":
			return append(positional, args[1:]...), nil
		case len(word) < 2 || word[0] != '-':
			if !everywhere {
				return args, nil
			}
			positional, args = append(positional, word), args[1:]
			continue
		}
		n, err := parseFlag(fs, args)
		if err != nil {
			return nil, err
		}
		args = args[n:]
	}
	return positional, nil
}

// parseFlag reads the flag at the beginning of args, and returns how many arguments the flag takes.
func parseFlag(fs *flag.FlagSet, args []string) (int, error) {
	name, _, valued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[0], "-"), "-"), "=")
	f := fs.Lookup(name)
	if f == nil {
		if name == "h" || name == "help" {
			return 0, flag.ErrHelp
		}
		var known []string
		fs.VisitAll(func(f *flag.Flag) { known = append(known, "-"+f.Name) })
		return 0, &unknownFlag{name, known}
	}
	n := 1
	if !valued && !isBool(f.Value) {
		n = 2
	}
	return n, plain(fs.Parse(args[:min(n, len(args))]), f)
}

// plain returns an error of package flag in plain words.
func plain(err error, f *flag.Flag) error {
	text, ok := "", false
	if err != nil {
		text, ok = strings.CutSuffix(err.Error(), ": parse error")
	}
	switch {
	case !ok:
		return err
	case isBool(f.Value):
		return fmt.Errorf("%s: it is true or false, or left out", text)
	}
	return fmt.Errorf("%s: it is a number", text)
}

func isBool(v flag.Value) bool {
	boolean, ok := v.(interface{ IsBoolFlag() bool })
	return ok && boolean.IsBoolFlag()
}

func (t *Table) explain(err error, command string) error {
	prefix := ""
	if command != "" {
		prefix = command + ": "
	}
	return usage(t.try(command), "%s%v", prefix, err)
}

// Suggest returns a question whether the nearest of the known words was meant; "" if none is near.
func Suggest(word string, known []string) string {
	best := nearest.Name(word, known)
	if best == "" {
		return ""
	}
	if strings.Contains(best, `"`) {
		return "; did you mean " + best + "?" // an address: if it were quoted again, it could not be copied
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// List is a flag that may be given several times.
type List []string

func (l *List) String() string { return strings.Join(*l, ",") }

// Set appends a value.
func (l *List) Set(s string) error {
	*l = append(*l, s)
	return nil
}
