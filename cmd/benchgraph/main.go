// Command benchgraph builds, measures and judges many revisions of a program, as one file declares them.
//
// Each command has a file of its own here; internal/cli reads the command line, internal/view writes for people and
// programs. Data goes to stdout, everything else to stderr.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/internal/printable"
)

func main() {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(gcLimit)
	if len(os.Args) == 4 && os.Args[1] == guardCommand {
		os.Exit(guardClocks(os.Args[2], os.Args[3], os.Stdin))
	}
	os.Exit(interruptible(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// Most commands end before a garbage collection would pay off: up to gcLimit, they trade memory for time.
const (
	gcPercent = 1600
	gcLimit   = 512 << 20
)

// liveLong makes garbage collections frequent, for commands that run long beside measured programs.
func liveLong() { debug.SetGCPercent(100) }

// interruptible runs a command line until it is done or interrupted: by the user, by a shutdown of the machine, or by
// the end of the terminal. A second interrupt kills this process and its descendants at once, in case the orderly end
// hangs.
func interruptible(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	hangup := make(chan os.Signal, 1) // many terminals send it twice, which is no second interrupt
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	hurry := make(chan struct{})
	go func() {
		select {
		case <-interrupts:
		case <-hangup:
		}
		cancel(interruptedError{})
		again := <-interrupts
		close(hurry)
		family.KillDescendants()
		signal.Reset(again)
		_ = syscall.Kill(os.Getpid(), again.(syscall.Signal)) // the parent sees that a signal ended this process
		time.Sleep(time.Second)
		os.Exit(130) // the signal was ignored from the start, as in the background of a shell
	}()
	code := run(ctx, args, env, stdin, stdout, stderr)
	select {
	case <-hurry:
		select {} // the goroutine above ends the process
	default:
		return code
	}
}

// run runs a command line and returns its exit code.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout}
	a := &app{args: args, env: variables(env), stdin: stdin, stdout: out, stderr: stderr}
	a.table = a.commands()
	err := a.table.Run(ctx, args, out)
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		err = hint("The output is lost; finished work is kept.", "stdout: %v", out.err) // not %w
	}
	a.explain(ctx, err)
	isSet := func(json *bool) bool { return *json }
	mistaken := is[*cli.UsageError](err) && (slices.Contains(args, "-json") || slices.Contains(args, "--json"))
	if (mistaken || slices.ContainsFunc(a.json, isSet)) && !out.used {
		a.explainJSON(ctx, err)
	}
	return exitCode(ctx, err)
}

// output is a stream that remembers the first error of writing, since a writer of tables does not check each line.
type output struct {
	io.Writer
	used bool
	err  error
}

func (o *output) Write(p []byte) (int, error) {
	o.used = true
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// app is one call of benchgraph.
type app struct {
	args   []string
	env    map[string]string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	table  *cli.Table
	events bool    // the command writes events, as apply does
	summed bool    // apply -json has written its last line
	json   []*bool // the -json flags of the commands

	login          *bucket.Login // of a worker, for the shared store; nil: this machine's credentials
	chdir, file    string
	noColor        bool
	vars, varFiles cli.List
}

func variables(env []string) map[string]string {
	all := map[string]string{}
	for _, v := range env {
		if name, value, ok := strings.Cut(v, "="); ok {
			all[name] = value
		}
	}
	return all
}

// globals defines the flags that every command has.
func (a *app) globals(fs *flag.FlagSet) {
	fs.StringVar(&a.chdir, "chdir", "", "work in `DIR`. Paths are below it, but for those of -out, -bundle and "+
		"-var-file and the files that apply, fmt, import, open, parse and show take")
	fs.StringVar(&a.file, "f", "", "read `FILE` instead of benchmarks.hcl; the directory of FILE is the project")
	fs.BoolVar(&a.noColor, "no-color", false, "write without colour")
	fs.Var(&a.vars, "var", "set a variable: `NAME=VALUE`; may be repeated")
	fs.Var(&a.varFiles, "var-file", "read variables from `FILE`; may be repeated")
}

// jsonFlag defines -json for a command. With -json, errors are printed as JSON, too.
func (a *app) jsonFlag(fs *flag.FlagSet, to *bool) {
	fs.BoolVar(to, "json", false, "write JSON to stdout")
	a.json = append(a.json, to)
}

// commands returns the table of all commands, from which help and completion are made, too.
func (a *app) commands() *cli.Table {
	return &cli.Table{
		Program: "benchgraph",
		Version: version,
		Summary: "benchgraph builds, measures and judges many revisions of a program, as benchmarks.hcl declares them.",
		Global:  a.globals,
		Words:   projectWords,
		Commands: []cli.Command{
			a.demo(), a.initialise(), a.validate(), a.format(), a.plan(), a.apply(), a.explainNode(), a.show(),
			a.logs(), a.status(), a.serve(), a.report(),
			a.openCommand(), a.compare(), a.try(), a.noise(), a.graph(), a.query(), a.parse(), a.importTable(),
			a.repro(), a.console(), a.doctor(), a.devices(), a.cache(), a.worker(), a.version(), a.completion(),
			a.metadata(),
		},
		Footer: `Environment: BENCHGRAPH_STATE_DIR (default .benchgraph), BENCHGRAPH_CACHE_DIR (results; default below the state),
BENCHGRAPH_HOST_LOCK, BENCHGRAPH_IMAGE_DISK (what images may take of the container engine's disk, like 60GiB),
BENCHGRAPH_VAR_NAME (a variable), NO_COLOR.

Exit codes: 0 done · 1 error · 2 changes pending (plan -detailed-exitcode) · 3 nodes failed or are blocked · 4 refused: not comparable, or
the accounting does not add up · 5 another process holds the lock · 6 budget reached · 7 no device can ever serve a node ·
8 a candidate has an outcome or a caveat that -fail-on names · 130 interrupted.
`,
	}
}

// terminal returns the file behind w, and reports whether it is a terminal.
func terminal(w io.Writer) (*os.File, bool) {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// style returns how text is written to w.
func (a *app) style(w io.Writer) view.Style {
	f, tty := terminal(w)
	columns := 0
	if tty {
		if columns, _, _ = term.GetSize(int(f.Fd())); columns <= 0 {
			columns = 80
		}
	}
	return view.Style{Columns: columns, Color: tty && !a.noColor && a.env["NO_COLOR"] == "" && a.env["TERM"] != "dumb"}
}

// unchanged returns a writer for foreign bytes that must not be altered. On a terminal, it removes the bytes that would
// control the terminal. Close flushes the rest.
func (a *app) unchanged() io.WriteCloser {
	if _, tty := terminal(a.stdout); tty {
		return printable.NewWriter(a.stdout)
	}
	return unclosed{a.stdout}
}

// unclosed is a writer whose Close does nothing.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// raw writes foreign text to stdout.
func (a *app) raw(text []byte) error {
	w := a.unchanged()
	_, err := w.Write(text)
	return errors.Join(err, w.Close())
}

func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.stderr, view.Clean(fmt.Sprintf(format, args...)))
}
