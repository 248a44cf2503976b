package slurmtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// Cluster is a Slurm cluster that ends with its test. If one of its methods fails, the test fails.
type Cluster struct {
	t       testing.TB
	dir     string
	count   int
	gpus    int
	hides   string
	disk    string
	net     *network
	daemons *daemons
}

// startTime limits the start of a daemon, which takes a tenth of a second on an idle machine.
const startTime = 8 * time.Second

// Start starts a cluster and waits until its nodes are idle.
func Start(t testing.TB, nodes Nodes) *Cluster {
	t.Helper()
	for _, name := range []string{"munged", "slurmctld", "slurmd", "sbatch", "ip", "nsenter", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			needtest.Missing(t, "no %s (apt-get install slurmctld slurmd slurm-client munge iproute2 util-linux)", name)
		}
	}
	if os.Geteuid() != 0 {
		needtest.Missing(t, "the nodes of a Slurm cluster need root for their namespaces")
	}
	c := &Cluster{t: t, dir: t.TempDir(), count: max(nodes.Count, 1), gpus: nodes.GPUs, hides: nodes.Hides,
		disk: nodes.Disk}
	if err := os.Chmod(filepath.Dir(c.dir), 0o711); err != nil { // other users' jobs read the configuration
		t.Fatal(err)
	}
	c.net = newNetwork(t, c.count)
	c.daemons = newDaemons(t)
	c.write(nodes.Config)
	c.munge()
	c.StartController()
	for i := range c.count {
		c.start(node(i))
	}
	c.idle(c.count)
	return c
}

func node(i int) string { return fmt.Sprintf("n%d", i+1) }

// Environ returns an environment, as NAME=value, in which Slurm's commands find this cluster.
func (c *Cluster) Environ() []string {
	return []string{"SLURM_CONF=" + filepath.Join(c.dir, "slurm.conf"), "PATH=" + os.Getenv("PATH"),
		"HOME=" + c.dir, "LC_ALL=C.UTF-8"}
}

// Gateway returns this machine's address for the nodes.
func (c *Cluster) Gateway() string { return c.net.gateway() }

// Profile sets additional variables, as NAME=value, of jobs on a node. It replaces earlier ones.
func (c *Cluster) Profile(node string, vars ...string) {
	c.t.Helper()
	c.file(filepath.Join("profile", node), strings.Join(append(vars, ""), "\n"))
}

// Kill simulates a power failure of a node: all its processes end at once, and it is unreachable. The controller
// notices within about 30 s; Fail makes it notice at once.
func (c *Cluster) Kill(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "down")
	c.daemons.kill(c.t, node)
}

// Up starts a killed node again.
func (c *Cluster) Up(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "up")
	c.start(node)
}

// Cut cuts a node off the network. Its processes continue.
func (c *Cluster) Cut(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "down")
}

// Join reconnects a node to the network.
func (c *Cluster) Join(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "up")
}

// Fail makes the controller consider a node dead at once.
func (c *Cluster) Fail(node string) { c.update("nodename="+node, "state=down", "reason=test") }

// Drain takes a node out of use; its jobs run to their ends.
func (c *Cluster) Drain(node string) { c.update("nodename="+node, "state=drain", "reason=test") }

// Resume brings a drained or failed node back into use.
func (c *Cluster) Resume(node string) { c.update("nodename="+node, "state=resume") }

// EndNow moves the time limit of a running job to now. The controller checks limits every 30 s.
func (c *Cluster) EndNow(job string) { c.update("jobid="+job, "EndTime=now+1") }

// StopController ends the controller with SIGTERM, so that it saves its state.
func (c *Cluster) StopController() {
	c.t.Helper()
	c.daemons.stop(c.t, controller)
}

// KillController kills the controller; only its last saved state remains.
func (c *Cluster) KillController() {
	c.t.Helper()
	c.daemons.kill(c.t, controller)
}

// ForgetJobs makes the controller forget all jobs, as if it had lost its state.
func (c *Cluster) ForgetJobs() {
	c.t.Helper()
	c.StopController()
	for _, name := range []string{"job_state", "job_state.old"} {
		if err := os.Remove(filepath.Join(c.dir, "state", name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			c.t.Fatal(err)
		}
	}
	c.StartController()
}

// StartController starts the controller and waits until it answers.
func (c *Cluster) StartController() {
	c.t.Helper()
	c.daemons.start(c.t, controller, c.log(controller), append(os.Environ(), c.Environ()...), "slurmctld", "-D", "-f",
		filepath.Join(c.dir, "slurm.conf"))
	c.until("the controller answers", func() bool {
		_, err := c.command("scontrol", "ping")
		return err == nil
	})
}

// Command runs one of Slurm's commands on this cluster and returns its standard output.
func (c *Cluster) Command(name string, args ...string) string {
	c.t.Helper()
	out, err := c.command(name, args...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

func (c *Cluster) command(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = c.Environ()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return string(out), err
}

func (c *Cluster) update(args ...string) {
	c.t.Helper()
	c.Command("scontrol", append([]string{"update"}, args...)...)
}

// idle waits until that many nodes are idle.
func (c *Cluster) idle(count int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d nodes are idle", count), func() bool {
		out, err := c.command("sinfo", "-h", "-N", "-o", "%T")
		return err == nil && strings.Count(out, "idle\n") >= count
	})
}

// until waits for a condition. On a time-out it writes the logs.
func (c *Cluster) until(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(startTime); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.Logs()
			c.t.Fatalf("%s: not within %s", what, startTime)
		}
	}
}

// Logs writes the ends of the logs of all daemons to the log of the test.
func (c *Cluster) Logs() {
	names, _ := filepath.Glob(filepath.Join(c.dir, "log", "*"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			text = []byte(err.Error())
		}
		c.t.Logf("%s:\n%s", filepath.Base(name), text[max(0, len(text)-4<<10):])
	}
}
