package slurmtest

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	controller = "slurmctld"
	authority  = "munged"
)

func (c *Cluster) log(daemon string) string { return filepath.Join(c.dir, "log", daemon) }

func (c *Cluster) socket() string { return filepath.Join(c.dir, "munge", "socket") }

func (c *Cluster) file(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// write makes the directories and the configuration of the cluster.
func (c *Cluster) write(more []string) {
	c.t.Helper()
	for _, sub := range []string{"munge", "log", "state", "spool", "profile", "dev"} {
		if err := os.Mkdir(filepath.Join(c.dir, sub), 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	gres := ""
	var devices strings.Builder
	if c.gpus > 0 {
		gres = fmt.Sprintf(" Gres=gpu:h200:%d", c.gpus)
		for i := range c.gpus {
			// the null device, as gres.conf accepts no plain file
			name := filepath.Join(c.dir, fmt.Sprintf("dev/gpu%d", i))
			if err := unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	var nodes strings.Builder
	for i := range c.count {
		fmt.Fprintf(&nodes, "NodeName=%[1]s NodeHostname=%[1]s NodeAddr=%[2]s Port=6818 CPUs=16 Boards=1 "+
			"SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=16000%[3]s\n", node(i), c.net.address(i),
			gres)
		if c.gpus > 0 {
			fmt.Fprintf(&devices, "NodeName=%s Name=gpu Type=h200 File=%s/dev/gpu[0-%d]\n", node(i), c.dir, c.gpus-1)
		}
	}
	text := strings.NewReplacer("DIR", c.dir, "HOST", host, "ADDRESS", c.net.gateway(), "SOCKET", c.socket(), "PORT",
		fmt.Sprint(freePort(c.t)), "FIRST-LAST", fmt.Sprintf("1-%d", c.count)).Replace(configuration)
	c.file("slurm.conf", text+nodes.String()+strings.Join(append(more, ""), "\n"))
	c.file("gres.conf", devices.String())
	group := "CgroupAutomount=no\n"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group = "IgnoreSystemd=yes\n"
	}
	c.file("cgroup.conf", group)
	c.file("prolog", fmt.Sprintf("#!/bin/sh\n[ ! -e '%[1]s/profile/'$SLURMD_NODENAME ] || "+
		"sed 's/^/export /' '%[1]s/profile/'$SLURMD_NODENAME\n", c.dir))
	if err := os.Chmod(filepath.Join(c.dir, "prolog"), 0o755); err != nil {
		c.t.Fatal(err)
	}
}

// configuration makes the controller notice everything as early as possible, and accept requests for any number of
// processors. A requeued job waits for cred_expire.
const configuration = `ClusterName=test
SlurmctldHost=HOST(ADDRESS)
SlurmctldPort=PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=SOCKET,cred_expire=5
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool/%n
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd-%n.pid
TaskProlog=DIR/prolog
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
MessageTimeout=5
KillWait=2
MinJobAge=300
EnforcePartLimits=ALL
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
PartitionName=gpu Nodes=n[FIRST-LAST] Default=YES MaxTime=INFINITE State=UP
`

// munge starts the daemon with which the others authenticate each other.
func (c *Cluster) munge() {
	c.t.Helper()
	key := filepath.Join(c.dir, "munge", "key")
	if err := os.WriteFile(key, []byte(rand.Text()+rand.Text()+rand.Text()), 0o400); err != nil {
		c.t.Fatal(err)
	}
	c.daemons.start(c.t, authority, c.log(authority), os.Environ(), "munged", "--foreground", "--force",
		"--num-threads=4", "--socket="+c.socket(), "--key-file="+key, "--pid-file="+filepath.Join(c.dir, "munged.pid"),
		"--seed-file="+filepath.Join(c.dir, "munge", "seed"))
	c.until("munged has a socket", func() bool {
		_, err := os.Stat(c.socket())
		return err == nil
	})
}

// start starts a node. All its processes are in a PID namespace and end with its first process.
func (c *Cluster) start(node string) {
	c.t.Helper()
	c.daemons.start(c.t, node, c.log(node), append(os.Environ(), c.Environ()...),
		"nsenter", "--net="+c.net.namespace(node),
		"unshare", "--pid", "--mount", "--uts", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", `hostname "$1"; [ -z "$3" ] || mount -t tmpfs hidden "$3"
			[ -z "$4" ] || mount -t tmpfs -o size=8m disk "$4"
			slurmd -D -f "$2" -N "$1"; echo "slurmd ended: $?"`, "sh", node,
		filepath.Join(c.dir, "slurm.conf"), c.hides, c.disk)
}
