// Package shell runs the commands of one node: where they run, what they see, whether a server among them is ready, and
// what it means when one of them fails. It knows no graph, no plan and no kind of node.
package shell

import (
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

// Config is what the commands of all nodes have in common.
type Config struct {
	Host       executor.Executor
	Containers executor.Executor // nil: nothing can run in a container
	Engine     *container.Engine // where those containers are
	HTTP       *http.Client      // by which servers on the host are asked whether they are ready
	Environ    []string          // of commands on the host, as NAME=value
	Secret     func(name string) (value string, ok bool)
	Rules      func() (diagnosis.Rules, error) // asked for when a command has failed
}

// Place says where the commands of a node run, and what they see there.
type Place struct {
	Dir, Out string          // directories of the host: the working directory and $OUT; they are made
	Tree     hclspec.Address // what is copied into Dir: the result of this input; zero: nothing

	Node    hclspec.Address // whose containers they are
	Image   *Image          // in a container of which each command runs; nil: on the host
	Limits  hclspec.Limits  // of the commands
	Keyed   bool            // the limits are part of the node's key
	Network bool            // the containers, or sandboxes, may reach beyond this machine
	Hidden  []string        // on the host, commands run in a sandbox in which these directories are empty; nil: in none
	InOut   bool            // in a container, commands run in $OUT: Dir would be taken for what the image has
	InTree  bool            // $SITE is Dir, whatever the image has

	Env     map[string]hclspec.Text
	Secrets []string // names
	Mounts  []Mount
}

// Mount is a directory of the host, or a volume of the container engine, that the commands see.
type Mount struct {
	Variable       string // that tells commands where it is
	executor.Mount        // without containers and sandboxes, nothing enforces that it is not writable
}

// Shell runs the commands of one node in one place, with a clean environment.
type Shell struct {
	Secrets workdir.Secrets        // what the commands see, and nobody else
	Cures   func() []classify.Rule // what is looked for in the output of a failed command before all else

	config Config
	env    *engine.Env
	path   func(hclspec.Address) string // of what texts refer to
	dir    string                       // working directory
	out    string                       // $OUT, on the host
	limits hclspec.Limits               // of the commands, and of what the attempt may write
	keyed  bool                         // the limits are part of the node's key
	vars   map[string]string            // what the commands see beside PATH, HOME and LANG
	last   *output.Kept                 // of the command that was started last
	box    *box                         // nil: on the host
	cell   *cell                        // nil: in no sandbox
	home   string                       // on the host, of the commands alone; empty: that of the user
}

// Open makes the place of a node's commands. An error may be a *engine.Failure, as of a secret that is not set.
func (c Config) Open(env *engine.Env, r input.Refs, at Place) (*Shell, error) {
	for _, d := range []string{at.Dir, at.Out} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
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
		if err := s.enter(r, at); err != nil {
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

// SetEnv gives the commands variables.
func (s *Shell) SetEnv(env map[string]hclspec.Text) {
	for name, value := range env {
		s.vars[name] = value.Expand(s.path)
	}
}

// addSecrets gives the commands the values of secrets. They are masked wherever the commands print them.
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

// with is a shell in the same place whose commands see further variables.
func (s *Shell) with(env map[string]hclspec.Text) *Shell {
	other := *s
	other.vars = maps.Clone(s.vars)
	other.SetEnv(env)
	return &other
}
