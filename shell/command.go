package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/device/standstill"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/output"
)

// errTimeout is the cause of cancellation for a phase that takes too long.
var errTimeout = errors.New("timeout")

func (s *Shell) expand(c hclspec.Command) []string {
	if c.Argv == nil {
		return []string{"sh", "-euc", c.Shell.Expand(s.path)}
	}
	argv := make([]string, len(c.Argv))
	for i, word := range c.Argv {
		argv[i] = s.variables(word.Expand(s.path))
	}
	return argv
}

// variables replaces $OUT, $HOME, $PORT and the like in a word that no shell expands. It does not replace secrets:
// every user of the machine can read the arguments of a process.
func (s *Shell) variables(word string) string {
	return sh.Substitute(word, func(name string) (string, bool) {
		if value, ok := s.vars[name]; ok {
			return value, true
		}
		for _, v := range s.baseEnviron() {
			if have, value, _ := strings.Cut(v, "="); have == name {
				return value, true
			}
		}
		return "", false
	})
}

// Words returns the words of a command's text, split at every character at which a shell might split.
func Words(text string) iter.Seq[string] {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>\"'=", r) })
}

// baseEnviron returns the part of the commands' environment that the node did not declare.
func (s *Shell) baseEnviron() []string {
	if s.box != nil {
		return s.box.environ()
	}
	return s.config.Environ
}

func (s *Shell) environ() []string {
	environ := slices.Clone(s.baseEnviron())
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		environ = append(environ, name+"="+s.vars[name])
	}
	for _, secret := range s.Secrets {
		environ = append(environ, secret.Name+"="+secret.Value)
	}
	return environ
}

// Capture returns a buffer for the output of the next command.
func (s *Shell) Capture() *output.Kept {
	s.last = output.NewKept(s.env.Log, s.env.Scratch)
	return s.last
}

// Last returns the output of the last command.
func (s *Shell) Last() *output.Kept { return s.last }

func (s *Shell) command(argv []string, stdout, stderr io.Writer) executor.Command {
	cmd := executor.Command{Argv: argv, Dir: s.dir, Env: s.environ(), Stdout: stdout, Stderr: stderr,
		Secrets: s.Secrets.Values()}
	if s.box != nil {
		c := s.box.Container
		c.Mounts = s.box.mounts(s.dir)
		cmd.Dir, cmd.Container = s.box.dir, &c
	}
	if s.box == nil {
		cmd.Limits = s.hostLimits()
	}
	if s.cell != nil {
		cmd.Sandbox = s.cell.sandbox()
	}
	return cmd
}

// hostLimits returns the limits of a command on the host. Cores are limited only in a sandbox, and only if the node's
// key contains the limits, as it contains the sandbox: a limit outside of the key could change a result.
func (s *Shell) hostLimits() *executor.Limits {
	l := &executor.Limits{Memory: s.limits.Memory}
	if s.cell != nil && s.keyed {
		l.CPUs = s.limits.CPUs
		if s.env.Lease != nil {
			l.Cores = coreList(s.env.Lease.Cores)
		}
	}
	return l
}

// Run runs a command to its end; a timeout of 0 means none. Standard output is also written to stdout, unless that is
// nil. A failed command returns an *engine.Failure with the class that the output suggests.
func (s *Shell) Run(ctx context.Context, stage string, command hclspec.Command, timeout time.Duration,
	stdout io.Writer) error {
	argv := s.expand(command)
	out := s.Capture()
	defer out.Close()
	s.Say("$ %s\n", forLog(argv))
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = standstill.Timeout(ctx, timeout, errTimeout)
		defer cancel()
	}
	ctx, limit, release := s.bounded(ctx)
	defer release()
	all := limit.Writer(out)
	if stdout != nil {
		all = limit.Writer(io.MultiWriter(stdout, out))
	}
	status, err := executor.Run(ctx, s.runner(), s.command(argv, all, limit.Writer(out)))
	switch {
	case s.overDisk(ctx):
		return s.outOfDisk(ctx, stage, out)
	case errors.Is(err, errTimeout):
		fmt.Fprintf(out, "benchgraph: ended after %s (timeout)\n", timeout)
		return s.Failure(stage, out, "did not end within "+timeout.String())
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return s.notRun(err, stage)
	case status.OOM && !status.OK():
		return s.outOfMemory(stage, out)
	case !status.OK():
		return s.Failure(stage, out, diagnosis.Ended(status))
	}
	return nil
}

// Say writes a line of benchgraph's into the attempt's log.
func (s *Shell) Say(format string, args ...any) {
	// a write error of the log is reported when the log is closed
	_, _ = io.WriteString(s.env.Log, s.Secrets.Mask(fmt.Sprintf(format, args...)))
}

// Failure classifies a failed command by its output: by a cure that matches, else by the first rule that matches. A
// matching cure that must not be learnt adds its remedy.
func (s *Shell) Failure(stage string, o *output.Kept, how string) error {
	f := &engine.Failure{Err: diagnosis.ErrOwn,
		Failure: failure.Failure{Class: failure.Permanent, Stage: stage, Message: stage + ": " + how}}
	cure, _, err := s.classify(stage, o, s.Cures())
	if err != nil {
		return err
	} else if cure.Class == failure.Fixable {
		f.Class, f.Rule, f.Evidence = failure.Fixable, cure.Rule, cure.Evidence
		return f
	}
	rules, err := s.config.Rules()
	if err != nil {
		return err
	}
	match, ok, err := s.classify(stage, o, rules.List)
	switch {
	case err != nil:
		return err
	case ok:
		f.Class, f.Rule, f.Evidence, f.Remedy = match.Class, match.Rule, match.Evidence, match.Remedy
		if f.Retry = rules.Retry(match.Rule); match.Rule == diagnosis.PathMissing {
			f.Err = nil // the machine was checked, so this is not only the command's word
		}
	default:
		f.Evidence = cmp.Or(cure.Evidence, o.LastLine())
	}
	f.Remedy = strings.Trim(f.Remedy+"; "+cure.Remedy, "; ")
	switch {
	case s.box != nil && f.Rule == "read_only" && unix.Access(s.env.Scratch, unix.W_OK) == nil: // the disk works
		f.Class, f.Retry = failure.Permanent, nil
		f.Remedy = "the root of a container is read-only: write below $OUT, $HOME or /tmp, " +
			"or declare a mount at that path with read_only = false"
	case s.cell != nil && f.Evidence != "":
		// Rules ignore sandboxes: they would retry a name that cannot be resolved.
		lacked, remedy := s.cell.sandbox().Explains(f.Evidence, s.dir, s.environ())
		if lacked != "" {
			f.Class, f.Rule, f.Remedy, f.Retry = failure.Permanent, "sandbox_"+lacked, remedy, nil
		} else if remedy != "" {
			f.Remedy = strings.TrimPrefix(f.Remedy+"; "+remedy, "; ")
		}
	}
	return f
}

// forLog returns a command as the log shows it. Further lines are marked, so that none is taken for output.
func forLog(argv []string) string { return strings.ReplaceAll(strings.Join(argv, " "), "\n", "\n> ") }

func (s *Shell) classify(stage string, o *output.Kept, rules []classify.Rule) (classify.Match, bool, error) {
	f, err := o.Open()
	if err != nil {
		return classify.Match{}, false, err
	}
	defer f.Close()
	return classify.Log(rules, stage, f)
}
