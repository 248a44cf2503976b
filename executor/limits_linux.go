package executor

import (
	"errors"
	"os/exec"
	"sync"

	"github.com/benchgraph/benchgraph/executor/internal/cgroup"
)

// groups is the root of this process's control groups. It is found once, by making a group.
var groups = sync.OnceValues(func() (*cgroup.Root, error) {
	r, err := cgroup.Find()
	if err != nil {
		return nil, err
	}
	g, err := r.New(cgroup.Limits{})
	if err != nil {
		return nil, err
	}
	return r, g.Close()
})

// Enforced returns the limits of commands on the host that this machine enforces. If it enforces none, the error is
// an *Unsupported with the remedy.
func Enforced() (Enforcement, error) {
	r, err := groups()
	switch {
	case errors.Is(err, cgroup.ErrVersion):
		return Enforcement{}, &Unsupported{
			What: limits + err.Error(), Remedy: "start Linux with systemd.unified_cgroup_hierarchy=1",
		}
	case err != nil:
		return Enforcement{}, &Unsupported{What: limits + err.Error(), Remedy: delegate}
	}
	return Enforcement{
		Memory: r.Has("memory"), Processes: r.Has("pids"), Cores: r.Has("cpuset"), CPUs: r.Has("cpu") ||
			r.Has("cpuset"),
	}, nil
}

// limits begins the messages about limits that are not enforced.
const limits = "limits of memory, cores and processes of commands on the host: "

// delegate is the remedy if this process may not manage control groups.
const delegate = "start benchgraph with systemd-run --user --scope -p Delegate=yes, or as root"

// bound is the control group of a command; nil: none.
type bound struct{ group *cgroup.Group }

// bind makes the control group of a command. It returns nil on a machine that enforces no limits.
func bind(cmd Command) (*bound, error) {
	if cmd.Limits == nil {
		return nil, nil
	}
	r, err := groups()
	if err != nil {
		return nil, nil
	}
	g, err := r.New(cgroup.Limits{
		Memory: cmd.Limits.Memory, Processes: mostProcesses, Cores: cmd.Limits.Cores, CPUs: cmd.Limits.CPUs,
	})
	if err != nil {
		return nil, err
	}
	return &bound{g}, nil
}

// fd returns a descriptor of the group, with which the program is started in it; negative: no group.
func (b *bound) fd() int {
	if b == nil {
		return -1
	}
	return b.group.FD()
}

func (b *bound) enter(c *exec.Cmd) {
	if b != nil {
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, b.fd()
	}
}

// release ends the remaining processes of the group, and records whether the command was killed for its memory.
func (b *bound) release(s *Status) error {
	if b == nil {
		return nil
	}
	if s != nil {
		s.OOM = b.group.OutOfMemory()
	}
	return b.group.Close()
}
