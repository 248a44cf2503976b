package containertest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// Outside simulates a network beyond this machine in a network namespace, and returns as "ADDRESS PORT" where it
// answers "the world". The test is skipped if that is impossible.
func Outside(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		needtest.Missing(t, "only root makes a network namespace")
	}
	name := fmt.Sprintf("bg%d", os.Getpid())
	subnet := fmt.Sprintf("198.51.100.%d", os.Getpid()%62*4)
	here, there := next(subnet, 1), next(subnet, 2)
	for _, line := range []string{
		"netns add " + name,
		"link add " + name + "h type veth peer name " + name + "n netns " + name,
		"addr add " + here + "/30 dev " + name + "h",
		"link set " + name + "h up",
		"-n " + name + " addr add " + there + "/30 dev " + name + "n",
		"-n " + name + " link set " + name + "n up",
	} {
		ip(t, line)
		if strings.HasPrefix(line, "netns") {
			t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", name).Run() })
		}
	}
	server := begin(t, "ip", "netns", "exec", name, "/bin/busybox", "nc", "-ll", "-p", "80", "-e", "/bin/busybox",
		"echo", "the world")
	t.Cleanup(server.kill)
	server.await(func() error {
		c, err := net.DialTimeout("tcp", there+":80", time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
	return there + " 80"
}

// ip runs the program ip with the words of a line. If that fails, the test is skipped.
func ip(t testing.TB, line string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		needtest.Missing(t, "ip %s: %v: %s", line, err, out)
	}
}

// next adds n to the last number of an IPv4 address.
func next(address string, n byte) string {
	a := net.ParseIP(address).To4()
	a[3] += n
	return a.String()
}
