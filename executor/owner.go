//go:build linux || darwin

package executor

import (
	"context"
	"os"
	"strings"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/executor/family"
)

// owner says which process made a container or network: its text is BOOT.STARTER.
type owner struct {
	boot string // of the machine; empty: not known
	family.Starter
}

func newOwner() owner { return owner{bootID(), family.This()} }

func (o owner) String() string { return o.boot + "." + o.Starter.String() }

func parseOwner(text string) (owner, bool) {
	boot, rest, _ := strings.Cut(text, ".")
	starter, ok := family.ParseStarter(rest)
	return owner{boot, starter}, ok
}

// bootID names the time since this machine was last started; empty: this system has no name for it.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// ReapContainers removes the containers and networks that a Docker left whose process was killed, and returns how many
// containers that were. These are of a process that is known to be dead: one of this machine that does not live, or one
// from before it was last started. When that cannot be known, they are of a process that used the state directory of e,
// which the caller must have locked. What benchgraph did not make is never touched.
func ReapContainers(ctx context.Context, e *container.Engine) (int, error) {
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
			return local // else it may be of another machine, where it may live
		}
		return labels[container.LabelState] == e.State()
	})
}
