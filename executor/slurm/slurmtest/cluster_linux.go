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

// Cluster is a Slurm cluster that ends with its test. Its methods end the test where they fail.
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

// startTime bounds the start of a daemon. It takes a tenth of a second on an idle machine.
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
	if err := os.Chmod(filepath.Dir(c.dir), 0o711); err != nil { // jobs of other users read the configuration
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

// Environ is an environment, as NAME=value, in which Slurm's commands find this cluster.
func (c *Cluster) Environ() []string {
	return []string{"SLURM_CONF=" + filepath.Join(c.dir, "slurm.conf"), "PATH=" + os.Getenv("PATH"),
		"HOME=" + c.dir, "LC_ALL=C.UTF-8"}
}

// Gateway is the address of this machine by which the nodes reach it.
func (c *Cluster) Gateway() string { return c.net.gateway() }

// Profile gives the jobs on a node variables of their own, as NAME=value, in the place of earlier ones.
func (c *Cluster) Profile(node string, vars ...string) {
	c.t.Helper()
	c.file(filepath.Join("profile", node), strings.Join(append(vars, ""), "\n"))
}

// Kill takes the power from a node: all its processes end at once, and it cannot be reached. The controller notices in
// about 30 s; Fail makes it notice at once.
func (c *Cluster) Kill(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "down")
	c.daemons.kill(c.t, node)
}

// Up starts a node again that was killed.
func (c *Cluster) Up(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "up")
	c.start(node)
}

// Cut takes the network from a node. Its processes run on.
func (c *Cluster) Cut(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "down")
}

// Join gives a node its network back.
func (c *Cluster) Join(node string) {
	c.t.Helper()
	c.net.set(c.t, node, "up")
}

// Fail makes the controller take a node for dead at once.
func (c *Cluster) Fail(node string) { c.update("nodename="+node, "state=down", "reason=test") }

// Drain takes a node out of use; the jobs on it run to their ends.
func (c *Cluster) Drain(node string) { c.update("nodename="+node, "state=drain", "reason=test") }

// Resume brings a node back into use that was drained or failed.
func (c *Cluster) Resume(node string) { c.update("nodename="+node, "state=resume") }

// EndNow lets the time of a running job be over. The controller looks every 30 s.
func (c *Cluster) EndNow(job string) { c.update("jobid="+job, "EndTime=now+1") }

// StopController ends the controller in order, so that it keeps its state.
func (c *Cluster) StopController() {
	c.t.Helper()
	c.daemons.stop(c.t, controller)
}

// KillController ends the controller at once, with the state that it last wrote.
func (c *Cluster) KillController() {
	c.t.Helper()
	c.daemons.kill(c.t, controller)
}

// ForgetJobs has the controller know no job any more, as one that has lost its state.
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

// idle waits until as many nodes can take jobs.
func (c *Cluster) idle(count int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d nodes are idle", count), func() bool {
		out, err := c.command("sinfo", "-h", "-N", "-o", "%T")
		return err == nil && strings.Count(out, "idle\n") >= count
	})
}

// until waits for a state of the cluster. Where it does not come, the logs say why.
func (c *Cluster) until(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(startTime); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.Logs()
			c.t.Fatalf("after %s it is not so that %s", startTime, what)
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
