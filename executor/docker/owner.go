//go:build linux || darwin

package docker

import (
	"context"
	"strings"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/executor/family"
)

// owner identifies the process that made a container or network. Its text is BOOT.STARTER.
type owner struct {
	boot string // boot ID of the machine; empty: not known
	family.Starter
}

func newOwner() owner { return owner{family.Boot(), family.This()} }

func (o owner) String() string { return o.boot + "." + o.Starter.String() }

func parseOwner(text string) (owner, bool) {
	boot, rest, _ := strings.Cut(text, ".")
	starter, ok := family.ParseStarter(rest)
	return owner{boot, starter}, ok
}

// Reap removes the containers and networks that an Executor left when its process was killed, and returns the
// number of containers. It removes those of processes known to be dead: a process of this machine that has ended, or
// one from before the last boot. If that cannot be known, it removes those with the state directory of e, which the
// caller must have locked. It never touches containers that benchgraph did not make.
func Reap(ctx context.Context, e *container.Engine) (int, error) {
	self, local := newOwner(), strings.HasPrefix(e.Host(), "unix://")
	return e.Reap(ctx, func(labels map[string]string) bool {
		o, ok := parseOwner(labels[container.LabelOwner])
		switch {
		case !ok || o == self:
			return false
		case o.boot == self.boot && o.Namespace == self.Namespace && self.Born != 0:
			if gone, known := o.Gone(); known {
				return gone
			}
		case o.boot != self.boot:
			return local // else it may be a living process of another machine
		}
		return labels[container.LabelState] == e.State()
	})
}
