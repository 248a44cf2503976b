package shell

import (
	"cmp"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// cell describes the sandboxes of a shell's commands on the host; each command has one of its own. Paths are those of
// the host.
type cell struct {
	executor.Sandbox                 // the common part
	out              string          // directory
	inputs           map[string]bool // directories of inputs that commands refer to
	mounts           []executor.Mount
}

// confine makes the commands run in sandboxes: they see only their inputs and declared directories, and have a new home
// and a new /tmp.
func (s *Shell) confine(r input.Refs, at Place) error {
	home, tmp, err := workdir.PrivateDirs(s.env.Scratch)
	if err != nil {
		return err
	}
	c := &cell{out: at.Out, inputs: map[string]bool{}, Sandbox: executor.Sandbox{
		Hidden: at.Hidden, Tmp: tmp, Home: home, Network: at.Network,
	}}
	if executor.SandboxOf() == executor.Landlock { // Landlock cannot mount the new directories over the usual ones
		s.vars["HOME"], s.vars["TMPDIR"] = home, tmp
	}
	if l := s.env.Lease; l != nil {
		c.Ports = l.Ports
		for _, d := range l.GPUs {
			c.GPUs = append(c.GPUs, cmp.Or(d.Parent, d.UUID))
		}
	}
	paths := s.path
	s.path = func(a hclspec.Address) string {
		c.inputs[r.Input(s.env, a).Dir] = true
		return paths(a)
	}
	s.cell = c
	return nil
}

// sandbox returns the sandbox of the next command.
func (c *cell) sandbox() *executor.Sandbox {
	o := c.Sandbox
	o.Shown = append([]executor.Mount{{Host: c.out, Writable: true}}, c.mounts...)
	for _, dir := range slices.Sorted(maps.Keys(c.inputs)) {
		o.Shown = append(o.Shown, executor.Mount{Host: dir})
	}
	return &o
}

// dialer is a process whose loopback may be its own.
type dialer interface {
	Dial(port int) (net.Conn, error)
}

// dial connects to a port of the server.
func (s *Server) dial(ctx context.Context, port string) (net.Conn, error) {
	if p, ok := s.process.(dialer); ok {
		number, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		return p.Dial(number)
	}
	d := net.Dialer{Timeout: pageTimeout}
	return d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
}

// client returns the HTTP client for the server.
func (s *Server) client() *http.Client {
	if _, ok := s.process.(dialer); !ok {
		return s.sh.config.HTTP
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return s.dial(ctx, port)
		}}}
}
