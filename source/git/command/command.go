// Package command runs git for package git, with a separate environment and configuration, so that no setting of the
// user or of a repository has an effect.
package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/internal/fs"
)

const (
	maxOutput = 256 << 20
	maxStderr = 64 << 10
)

// ConfigName is the name of the file with Config in a mirror.
const ConfigName = "benchgraph-gitconfig"

// Config replaces the user's configuration. It is a file, because a fetch from a path starts a second git, which
// reads the file but not -c options.
const Config = `[safe]
	directory = *
[core]
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	fsmonitor = false
	autocrlf = false
	eol = lf
	symlinks = true
	protectHFS = true
	protectNTFS = true
	quotePath = false
[gc]
	auto = 0
[maintenance]
	auto = false
[fetch]
	recurseSubmodules = false
	fsckObjects = false
[apply]
	whitespace = nowarn
[advice]
	detachedHead = false
[http]
	lowSpeedLimit = 1000
	lowSpeedTime = 60
`

// passed are the variables that a fetch may need and that cannot change the content of a repository.
var passed = []string{
	"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
	"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_SSL_NO_VERIFY", "GIT_SSH_COMMAND",
	"GIT_EXEC_PATH",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
}

// Environment returns the environment of every git in the repository dir. From the caller's it keeps only what a
// fetch may need.
func Environment(caller []string, dir string) []string {
	var env []string
	ssh := "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=30"
	for _, kv := range caller {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, name) {
			env = append(env, kv)
		}
		if name == "GIT_SSH_COMMAND" {
			ssh = ""
		}
	}
	if ssh != "" {
		env = append(env, ssh)
	}
	return append(env,
		"GIT_DIR="+dir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+filepath.Join(dir, ConfigName),
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1", // git before 2.39.4 ignores it: see filters in package mirror
		"GIT_DEFAULT_REF_FORMAT=files",
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
		"LC_ALL=C",
	)
}

// Git runs git in one repository.
type Git struct {
	Exec    executor.Executor
	Dir     string   // working directory, absolute
	Env     []string // the whole environment
	Secrets []string // values that git must not print
	Log     io.Writer
}

// Call is one run of git.
type Call struct {
	Args   []string
	Stdin  string
	Env    []string  // added to Git.Env
	OK     []int     // exit statuses besides 0 that are no errors
	Stderr io.Writer // gets git's standard error instead of the log; nil: the log gets it
}

// verb returns git's subcommand: the first word after the -c options.
func (c Call) verb() string {
	args := c.Args
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

// ExitError is the error for git's exit status.
type ExitError struct {
	Verb   string
	Status executor.Status
	Stderr string // end of its standard error
}

func (e *ExitError) Error() string {
	if e.Status.Signal != "" {
		return fmt.Sprintf("git %s: ended by %s", e.Verb, e.Status.Signal)
	}
	if line := FirstLine(e.Stderr); line != "" {
		return fmt.Sprintf("git %s: %s", e.Verb, line)
	}
	return fmt.Sprintf("git %s: exit status %d", e.Verb, e.Status.Code)
}

// Output runs git and returns its output.
func (g *Git) Output(ctx context.Context, c Call) (string, error) {
	var out []byte
	err := g.Stream(ctx, c, func(r *bufio.Reader) (err error) {
		if out, err = fs.ReadAll(r, maxOutput); err != nil {
			err = fmt.Errorf("output: %w", err)
		}
		return err
	})
	return string(out), err
}

// Stream runs git and passes its output to read. If read returns early, git is stopped.
func (g *Git) Stream(ctx context.Context, c Call, read func(*bufio.Reader) error) error {
	verb := c.verb()
	outR, outW := io.Pipe()
	stderr, also := &tail{}, g.Log
	if c.Stderr != nil {
		also = c.Stderr
	}
	proc, err := g.Exec.Start(ctx, executor.Command{
		Argv: append([]string{"git"}, c.Args...), Dir: g.Dir, Env: append(g.Env[:len(g.Env):len(g.Env)], c.Env...),
		Stdin: strings.NewReader(c.Stdin), Stdout: outW, Stderr: io.MultiWriter(stderr, also), Secrets: g.Secrets,
	})
	if err != nil {
		return fmt.Errorf("git %s: %w", verb, err)
	}
	type end struct {
		status executor.Status
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		status, err := proc.Wait(ctx)
		outW.Close()
		ended <- end{status, err}
	}()
	readErr := read(bufio.NewReaderSize(outR, 64<<10))
	if readErr != nil {
		// First close the output: a git that is blocked on it would not react to SIGTERM.
		outR.CloseWithError(readErr)
		proc.Stop()
	} else {
		_, readErr = io.Copy(io.Discard, outR)
	}
	e := <-ended
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("git %s: %w", verb, context.Cause(ctx))
	case readErr != nil && !errors.Is(readErr, io.ErrUnexpectedEOF) && !errors.Is(readErr, io.EOF):
		return fmt.Errorf("git %s: %w", verb, readErr)
	case e.err != nil:
		return fmt.Errorf("git %s: %w", verb, e.err)
	case !e.status.OK() && !(e.status.Signal == "" && slices.Contains(c.OK, e.status.Code)):
		// Git's own message explains truncated output better.
		return &ExitError{Verb: verb, Status: e.status, Stderr: stderr.String()}
	case readErr != nil:
		return fmt.Errorf("git %s: output is cut short: %w", verb, readErr)
	}
	return nil
}

// tail keeps the last bytes: they say why git failed.
type tail struct{ buf bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > maxStderr {
		p = p[len(p)-maxStderr:]
	}
	if over := t.buf.Len() + len(p) - maxStderr; over > 0 {
		t.buf.Next(over)
	}
	t.buf.Write(p)
	return n, nil
}

func (t *tail) String() string { return t.buf.String() }

// FirstLine returns the first line of git's message that is neither a hint nor a warning.
func FirstLine(s string) string {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "hint:") && !strings.HasPrefix(line, "warning:") {
			return line
		}
	}
	return strings.TrimSpace(s)
}

// Alternate quotes a path for git's list of alternates, so that a colon in it is no separator.
func Alternate(path string) string {
	if !strings.ContainsAny(path, `:"\`) {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
