//go:build linux || darwin

package executor

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/container"
)

// owner says which process made a container or network: its text is BOOT.NAMESPACE.PID.BORN.
type owner struct {
	boot      string // of the machine; empty: not known
	namespace string // of process numbers
	pid       int
	born      uint64
}

func newOwner() owner {
	m := newMark("")
	return owner{bootID(), m.namespace, m.pid, m.born}
}

func (o owner) String() string {
	return fmt.Sprintf("%s.%s.%d.%d", o.boot, o.namespace, o.pid, o.born)
}

func parseOwner(text string) (owner, bool) {
	f := strings.Split(text, ".")
	if len(f) != 4 {
		return owner{}, false
	}
	pid, err := strconv.Atoi(f[2])
	born, err2 := strconv.ParseUint(f[3], 10, 64)
	return owner{f[0], f[1], pid, born}, err == nil && err2 == nil && pid > 0
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
		case o.boot == self.boot && o.namespace == self.namespace && self.born != 0:
			if gone, known := isGone(procID{o.pid, o.born}); known {
				return gone
			}
		case o.boot != self.boot:
			return local // else it may be of another machine, where it may live
		}
		return labels[container.LabelState] == e.State()
	})
}
