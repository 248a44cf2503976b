package slurmtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// network is a bridge with one network namespace for each node.
type network struct {
	prefix string // prefix of all names
	subnet int    // second and third number of its addresses
}

// newNetwork makes a network that is removed at the end of the test.
func newNetwork(t testing.TB, count int) *network {
	t.Helper()
	sweep()
	var n *network
	for try := 0; ; try++ {
		// 10.128.0.0 to 10.255.255.0; names of devices have at most 15 characters
		n = &network{"bg" + digits(os.Getpid(), 5) + digits(rand.IntN(36*36), 2), 128<<8 + rand.IntN(128<<8)}
		if !taken(n.gateway()) && ip("link", "add", n.prefix+"br", "type", "bridge") == nil {
			break
		}
		if try == 9 {
			needtest.Missing(t, "no bridge can be made: %v", ip("link", "add", n.prefix+"br", "type", "bridge"))
		}
	}
	t.Cleanup(func() { n.must(t, "link", "del", n.prefix+"br") })
	n.must(t, "addr", "add", n.gateway()+"/24", "dev", n.prefix+"br")
	n.must(t, "link", "set", n.prefix+"br", "up")
	for i := range count {
		name, outer, inner := n.prefix+node(i), n.device(node(i)), n.prefix+"i"+node(i)
		n.must(t, "netns", "add", name)
		t.Cleanup(func() { n.must(t, "netns", "del", name) })
		n.must(t, "link", "add", outer, "type", "veth", "peer", "name", inner)
		t.Cleanup(func() { _ = ip("link", "del", outer) }) // it may have been removed with the namespace
		n.must(t, "link", "set", inner, "netns", name)
		n.must(t, "-n", name, "addr", "add", n.address(i)+"/24", "dev", inner)
		n.must(t, "-n", name, "link", "set", inner, "up")
		n.must(t, "-n", name, "link", "set", "lo", "up")
		n.must(t, "link", "set", outer, "master", n.prefix+"br", "up")
	}
	return n
}

// digits returns a number in base 36 with that many digits.
func digits(n, count int) string {
	text := strconv.FormatInt(int64(n), 36)
	return strings.Repeat("0", max(count-len(text), 0)) + text
}

// ours matches the names of networks and contains the number of the process that made them.
var ours = regexp.MustCompile(`^bg([0-9a-z]{5})[0-9a-z]{2}(br|on\d+|n\d+)$`)

// sweep removes networks of killed test programs.
func sweep() {
	dead := func(name string) bool {
		found := ours.FindStringSubmatch(name)
		if found == nil {
			return false
		}
		pid, err := strconv.ParseInt(found[1], 36, 32)
		return err == nil && pid > 1 && errors.Is(syscall.Kill(int(pid), 0), syscall.ESRCH)
	}
	namespaces, _ := filepath.Glob("/run/netns/bg*")
	for _, path := range namespaces {
		if name := filepath.Base(path); dead(name) {
			_ = ip("netns", "del", name)
		}
	}
	devices, _ := net.Interfaces()
	for _, d := range devices {
		if dead(d.Name) {
			_ = ip("link", "del", d.Name)
		}
	}
}

// taken reports whether this machine has an interface in the subnet of an address.
func taken(address string) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.Contains(net.ParseIP(address)) {
			return true
		}
	}
	return false
}

func (n *network) device(node string) string { return n.prefix + "o" + node }

func (n *network) namespace(node string) string { return "/run/netns/" + n.prefix + node }

// gateway returns this machine's address in the network.
func (n *network) gateway() string { return fmt.Sprintf("10.%d.%d.1", n.subnet>>8, n.subnet&255) }

func (n *network) address(i int) string {
	return fmt.Sprintf("10.%d.%d.%d", n.subnet>>8, n.subnet&255, i+2)
}

// set connects a node to the network ("up") or disconnects it ("down").
func (n *network) set(t testing.TB, node, state string) {
	t.Helper()
	n.must(t, "link", "set", n.device(node), state)
}

func (n *network) must(t testing.TB, args ...string) {
	t.Helper()
	if err := ip(args...); err != nil {
		t.Fatal(err)
	}
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// freePort returns a free port.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
