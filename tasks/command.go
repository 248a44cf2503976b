package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// errTimeout is the cause with which a phase's context ends when it took too long.
var errTimeout = errors.New("timeout")

// shell runs the commands of one node in one working directory, with a clean environment.
type shell struct {
	p       *Project
	env     *engine.Env
	path    func(hclspec.Address) string // of what texts refer to
	dir     string                       // working directory
	vars    map[string]string            // what the commands see beside PATH, HOME and LANG
	secrets []secret                     // what the commands see, and nobody else
	fixes   []hclspec.Address            // what may be learnt from a failure
	applied []appliedFix
	log     io.Writer // the attempt's log
	last    *captured // of the command that was started last
	box     *box      // nil: on the host
}

// with is a shell in the same place whose commands see further variables.
func (s *shell) with(env map[string]hclspec.Text) *shell {
	other := *s
	other.vars = maps.Clone(s.vars)
	other.setEnv(env)
	return &other
}

// newShell makes a shell in an empty directory.
func (p *Project) newShell(env *engine.Env, r refs, dir, out string) (*shell, error) {
	for _, d := range []string{dir, out} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	s := &shell{p: p, env: env, path: r.paths(env), dir: dir, log: env.Log}
	s.vars = map[string]string{"OUT": out, "SRC": dir, "SITE": dir, "CUDA_VISIBLE_DEVICES": devices(env)}
	if env.Lease != nil && len(env.Lease.Ports) > 0 {
		s.vars["PORT"] = strconv.Itoa(env.Lease.Ports[0])
	}
	return s, nil
}

// devices is the value of CUDA_VISIBLE_DEVICES: empty when none was asked for, so that none can be used unleased.
func devices(env *engine.Env) string {
	var uuids []string
	if env.Lease != nil {
		for _, d := range env.Lease.GPUs {
			uuids = append(uuids, d.UUID)
		}
	}
	return strings.Join(uuids, ",")
}

func (s *shell) setEnv(env map[string]hclspec.Text) {
	for name, value := range env {
		s.vars[name] = value.Expand(s.path)
	}
}

// setSecrets gives the commands the values of secrets. They are masked wherever the commands print them.
func (s *shell) setSecrets(names []string) error {
	for _, name := range names {
		value, ok := s.p.Secret(name)
		if !ok {
			return &engine.Failure{Retry: &engine.Retry{Attempts: 1}, Failure: cache.Failure{Class: cache.Infra, Rule: "secret_missing", Stage: "start",
				Message: "secret " + name + " is not set in the environment", Remedy: "export " + name + " and apply again"}}
		}
		s.secrets = append(s.secrets, secret{name, value})
	}
	return nil
}

// expand makes the argv of a command.
func (s *shell) expand(c hclspec.Command) []string {
	if c.Argv == nil {
		return []string{"sh", "-euc", c.Shell.Expand(s.path)}
	}
	argv := make([]string, len(c.Argv))
	for i, word := range c.Argv {
		argv[i] = s.variables(word.Expand(s.path))
	}
	return argv
}

// variables replaces $OUT, $HOME, $PORT and the like in a word that no shell will see. Secrets are not among them: every
// user of the machine can read the arguments of a process.
func (s *shell) variables(word string) string {
	return substitute(word, func(name string) (string, bool) {
		if value, ok := s.vars[name]; ok {
			return value, true
		}
		for _, v := range s.given() {
			if have, value, _ := strings.Cut(v, "="); have == name {
				return value, true
			}
		}
		return "", false
	})
}

// variableIn is a variable in a word, as $NAME or ${NAME}.
var variableIn = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})`)

// substitute replaces the variables that are known. All else stays as it is: ${name%.c} may be for a shell among the words.
func substitute(word string, known func(name string) (string, bool)) string {
	return variableIn.ReplaceAllStringFunc(word, func(found string) string {
		if value, ok := known(strings.Trim(found, "${}")); ok {
			return value
		}
		return found
	})
}

// given is what commands see of the environment that they did not declare.
func (s *shell) given() []string {
	if s.box != nil {
		return s.box.environ()
	}
	return s.p.Environ
}

func (s *shell) environ() []string {
	environ := slices.Clone(s.given())
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		environ = append(environ, name+"="+s.vars[name])
	}
	for _, secret := range s.secrets {
		environ = append(environ, secret.name+"="+secret.value)
	}
	return environ
}

// captured is the output of a command, kept in a file until it is known whether it succeeded.
type captured struct {
	out io.Writer // where the output goes: here, and to the attempt's log
	dir string

	mu   sync.Mutex
	file *os.File // nil until there is something to keep: most commands print nothing
}

// capture makes the place for the output of the next command.
func (s *shell) capture() *captured {
	s.last = &captured{dir: s.env.Scratch}
	s.last.out = io.MultiWriter(s.last, s.log)
	return s.last
}

func (c *captured) Write(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		if c.file, err = os.CreateTemp(c.dir, "output-*.log"); err != nil {
			return 0, err
		}
	}
	return c.file.Write(p)
}

// open opens what was kept so far for reading.
func (c *captured) open() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return os.Open(os.DevNull)
	}
	return os.Open(c.file.Name())
}

// close ends the writing.
func (c *captured) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		c.file.Close()
	}
}

func (s *shell) command(argv []string, stdout, stderr io.Writer) executor.Command {
	cmd := executor.Command{Argv: argv, Dir: s.dir, Env: s.environ(), Stdout: stdout, Stderr: stderr, Secrets: values(s.secrets)}
	if s.box != nil {
		c := s.box.Container
		c.Mounts = s.box.mounts(s.dir)
		cmd.Dir, cmd.Container = s.box.dir, &c
	}
	return cmd
}

// run runs a command to its end. A command that fails is a *engine.Failure of the class that its output tells.
func (s *shell) run(ctx context.Context, stage string, argv []string, timeout time.Duration, stdout io.Writer) error {
	c := s.capture()
	defer c.close()
	s.say("$ %s\n", strings.Join(argv, " "))
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
	}
	out := c.out
	if stdout != nil {
		out = io.MultiWriter(stdout, c.out)
	}
	status, err := executor.Run(ctx, s.runner(), s.command(argv, out, c.out))
	switch {
	case errors.Is(err, errTimeout):
		fmt.Fprintf(c.out, "benchgraph: ended after %s (timeout)\n", timeout)
		return s.failure(stage, c, "did not end within "+timeout.String())
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return s.notRun(err, stage)
	case status.OOM && !status.OK():
		return s.outOfMemory(stage, c)
	case !status.OK():
		return s.failure(stage, c, ended(status))
	}
	return nil
}

// notRun is the failure of a command that did not start: an image lacks its program for good, this machine may have it the next time.
func (s *shell) notRun(err error, stage string) error {
	if s.box != nil {
		return notRun(err, stage, cache.Permanent)
	}
	return notRun(err, stage, cache.Infra)
}

// say writes a line of our own into the attempt's log.
func (s *shell) say(format string, args ...any) {
	_, _ = io.WriteString(s.log, mask(fmt.Sprintf(format, args...), s.secrets)) // a log that cannot be written fails when it is closed
}

func ended(s executor.Status) string {
	if s.Signal != "" {
		return "ended by " + s.Signal
	}
	return fmt.Sprintf("exit status %d", s.Code)
}

// failure finds out what a failed command's output means: a fix that is registered for it, else the first rule that
// matches, else nothing that is known.
func (s *shell) failure(stage string, c *captured, how string) error {
	f := &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Stage: stage, Message: stage + ": " + how}}
	if rule, ok, err := s.classify(stage, c, s.detectors()); err != nil {
		return err
	} else if ok {
		f.Class, f.Rule, f.Evidence = cache.Fixable, rule.Rule.Name, rule.Evidence
		return f
	}
	rules, err := s.p.rules()
	if err != nil {
		return err
	}
	match, ok, err := s.classify(stage, c, rules.list)
	switch {
	case err != nil:
		return err
	case ok:
		f.Class, f.Rule, f.Evidence, f.Remedy = cache.Class(match.Rule.Class), match.Rule.Name, match.Evidence, match.Rule.Remedy
		f.Retry = rules.retry(match.Rule.Name)
	default:
		f.Evidence = lastLine(c)
	}
	return f
}

// excused is the failure of a command that succeeded without doing what it should: what its output says of a fix, of
// something transient or of this machine goes before that.
func (s *shell) excused(missing error) error {
	var f *engine.Failure
	if err := s.failure("run", s.last, "succeeded without its metric"); !errors.As(err, &f) {
		return err
	}
	if _, fixable := cutFix(f.Rule); fixable || f.Class.Retried() {
		return f
	}
	return missing
}

func (s *shell) classify(stage string, c *captured, rules []metrics.Rule) (metrics.Match, bool, error) {
	if len(rules) == 0 {
		return metrics.Match{}, false, nil
	}
	f, err := c.open()
	if err != nil {
		return metrics.Match{}, false, err
	}
	defer f.Close()
	return metrics.Classify(rules, stage, f)
}

// lastLine is what a failure that nothing explains said last. Logs may be huge: only their end is read.
func lastLine(c *captured) string {
	const window = 64 << 10
	f, err := c.open()
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	size := min(window, info.Size())
	return metrics.LastLine(io.NewSectionReader(f, info.Size()-size, size))
}
