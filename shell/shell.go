// Package shell runs the commands of one node: it makes their place, tells when a server is ready, and classifies
// failures. It knows no graph, no plan and no kind of node.
package shell

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"strconv"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/output"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Config holds the settings that the commands of all nodes share.
type Config struct {
	Host       executor.Executor
	Containers executor.Executor // nil: nothing can run in a container
	Engine     *container.Engine // engine of these containers
	HTTP       *http.Client      // for the ready checks of servers on the host
	Environ    []string          // of commands on the host, as NAME=value
	Secret     func(name string) (value string, ok bool)
	Rules      func() (diagnosis.Rules, error) // called after a command has failed
}

// Place describes where the commands of a node run, and what they see there.
type Place struct {
	Dir, Out string          // directories of the host, which are made: the working directory and $OUT
	Tree     hclspec.Address // input that is copied into Dir; zero: none

	Node    hclspec.Address // node of the containers, for their labels
	Image   *Image          // each command runs in a container of this image; nil: on the host
	Limits  hclspec.Limits  // of the commands
	Keyed   bool            // the limits are part of the node's key
	Network bool            // containers or sandboxes may reach other machines
	Hidden  []string        // on the host: paths that the commands' sandboxes hide; nil: no sandbox
	InOut   bool            // in a container, commands run in $OUT: packages in Dir would hide the image's
	InTree  bool            // $SITE is Dir, even if the image has packages

	Env     map[string]hclspec.Text
	Secrets []string // names of secrets
	Mounts  []Mount
}

// Mount is a directory of the host, or a volume of the container engine, for commands.
type Mount struct {
	Variable       string // environment variable with the path
	executor.Mount        // without a container or sandbox, nothing makes it read-only
}

// Shell runs the commands of one node in one place, with a clean environment.
type Shell struct {
	Secrets workdir.Secrets        // values that only the commands see
	Cures   func() []classify.Rule // rules that are tried first on the output of a failed command

	config Config
	env    *engine.Env
	path   func(hclspec.Address) string // path of a referenced result, for commands
	dir    string                       // working directory
	out    string                       // $OUT, on the host
	limits hclspec.Limits               // of the commands, and of the files that the attempt writes
	keyed  bool                         // the limits are part of the node's key
	vars   map[string]string            // variables beside PATH, HOME and LANG
	last   *output.Kept                 // output of the last command
	box    *box                         // nil: on the host
	cell   *cell                        // nil: in no sandbox
	home   string                       // private home on the host; empty: the user's
}

// Open makes the place of a node's commands. Errors may be an *engine.Failure, for instance for a missing secret.
func (c Config) Open(env *engine.Env, r input.Refs, at Place) (*Shell, error) {
	if err := errors.Join(os.MkdirAll(at.Dir, 0o755), os.MkdirAll(at.Out, 0o755)); err != nil {
		return nil, err
	}
	notes := transcript.Of(env)
	if at.Tree != (hclspec.Address{}) {
		notes.Did("tree", r.Input(env, at.Tree).Dir, at.Dir)
		if err := fs.CopyTree(at.Dir, r.Input(env, at.Tree).Dir); err != nil {
			return nil, err
		}
	}
	c.Host, c.Containers = notes.Executor(c.Host), notes.Executor(c.Containers)
	s := &Shell{config: c, env: env, path: r.Paths(env), dir: at.Dir, out: at.Out, limits: at.Limits, keyed: at.Keyed}
	s.Cures = func() []classify.Rule { return nil }
	s.vars = map[string]string{"OUT": at.Out, "SRC": at.Dir, "SITE": at.Dir,
		"CUDA_VISIBLE_DEVICES": env.Lease.Visible()}
	if env.Lease != nil && len(env.Lease.Ports) > 0 {
		s.vars["PORT"] = strconv.Itoa(env.Lease.Ports[0])
	}
	if at.Image != nil {
		if err := s.enterContainer(r, at); err != nil {
			return nil, err
		}
	} else if at.Hidden != nil {
		if err := s.confine(r, at); err != nil {
			return nil, err
		}
	}
	for _, m := range at.Mounts {
		if s.vars[m.Variable] = m.Host; s.box != nil {
			s.vars[m.Variable] = m.Inside
			s.box.extra = append(s.box.extra, m.Mount)
		}
		if s.cell != nil {
			s.cell.mounts = append(s.cell.mounts, executor.Mount{Host: m.Host, Writable: m.Writable})
		}
	}
	s.SetEnv(at.Env)
	return s, s.addSecrets(at.Secrets)
}

// SetEnv adds variables to the environment of later commands.
func (s *Shell) SetEnv(env map[string]hclspec.Text) {
	for name, value := range env {
		s.vars[name] = value.Expand(s.path)
	}
}

// addSecrets adds secrets to the environment. Their values are masked wherever commands print them.
func (s *Shell) addSecrets(names []string) error {
	for _, name := range names {
		value, ok := s.config.Secret(name)
		if !ok {
			return &engine.Failure{Retry: &engine.Retry{Attempts: 1},
				Failure: failure.Failure{Class: failure.Infra, Rule: "secret_missing", Stage: "start",
					Message: "secret " + name + " is not set in the environment", Remedy: "export " + name +
						" and apply again"}}
		}
		s.Secrets = append(s.Secrets, workdir.Secret{Name: name, Value: value})
	}
	return nil
}

// with returns a shell in the same place with further variables.
func (s *Shell) with(env map[string]hclspec.Text) *Shell {
	other := *s
	other.vars = maps.Clone(s.vars)
	other.SetEnv(env)
	return &other
}

// Apart returns a shell on the host with a copy of the working directory in dir, which exists, and a new $OUT; in a
// sandbox also with its own home. So commands of the two shells cannot change the programs that the others run.
func (s *Shell) Apart(dir, out string) (other *Shell, err error) {
	transcript.Of(s.env).Did("tree", s.dir, dir)
	err = errors.Join(os.Mkdir(out, 0o755), fs.CopyTree(dir, s.dir))
	other = s.with(nil)
	other.vars["OUT"], other.vars["SRC"], other.vars["SITE"] = out, dir, dir
	other.dir, other.out = dir, out
	if s.cell != nil && err == nil {
		own := *s.cell
		if own.Home, _, err = workdir.PrivateDirs(s.env.Scratch); s.vars["HOME"] == s.cell.Home {
			other.vars["HOME"] = own.Home
		}
		own.out, other.cell = out, &own
	}
	return other, err
}
