// Package executor runs foreign commands: when Stop or Wait returns, all processes that the command started have
// ended.
package executor

import (
	"context"
	"io"
	"time"

	"github.com/benchgraph/benchgraph/container/trial"
)

// Command is one program to run.
type Command struct {
	Argv []string // argv[0] is looked up in the PATH of Env; a relative path is below Dir
	Dir  string   // working directory, absolute
	// the whole environment, as NAME=value; only BENCHGRAPH_PROC is added, by which descendants are found
	Env     []string
	Stdin   io.Reader     // nil: empty
	Stdout  io.Writer     // gets the whole output, in order; nil: discarded
	Stderr  io.Writer     // may be the same as Stdout
	Secrets []string      // values that *** replaces in the output
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: 5 s

	Container *Container // nil: runs on the host; otherwise Dir is a path in the container
	Sandbox   *Sandbox   // for commands on the host: which part of it they see; nil: all
	Limits    *Limits    // for commands on the host, where the machine enforces them (see Enforced); nil: none
}

// MostProcesses is the largest number of processes and threads in a container or a sandbox.
const MostProcesses = 32768

// Limits are limits of a command on the host, together with all processes that it starts.
type Limits struct {
	Memory int64  // bytes, swap included; 0: no limit
	Cores  string // such as "0-3,8"; empty: all
	CPUs   int    // time of so many cores, where Cores is empty or not enforced; 0: no limit
}

// Enforcement lists the limits of commands on the host that a machine enforces.
type Enforcement struct {
	Memory, Processes bool
	CPUs              bool // the time, or the set of cores
	Cores             bool // the set of cores
}

// Sandbox says which part of the host a command sees (Linux). The command runs in its own namespaces without any
// privilege: it sees no other processes, only a loopback as network, only the usual devices and the named ones, and
// the system's files read-only. The homes of users, /run and hidden directories are empty. It can write to Dir, to
// its own /tmp, /dev/shm and home, and to writable mounts. All processes that it started end with it. Landlock
// enforces the rules for files and signals a second time. Where the kernel refuses namespaces, only Landlock confines
// the command: see Confinement.
type Sandbox struct {
	Hidden  []string // directories that are empty in it, such as the project's, and files that it cannot read
	Shown   []Mount  // mounts in hidden directories; without Inside, at the same path
	Tmp     string   // directory mounted at /tmp and /var/tmp; empty: one in memory
	Home    string   // its home directory; empty: Tmp
	GPUs    []string // UUIDs of its devices; for an instance, the UUID of its device
	Network bool     // it has this machine's network
	Ports   []int    // TCP ports that it needs where namespaces are refused
	Beside  Process  // process, in a sandbox without Network, whose loopback it shares; nil: its own loopback
}

// Confinement is how this machine confines commands that have a Sandbox.
type Confinement string

// The confinements, the strongest first.
const (
	Namespaces Confinement = "namespaces"
	Landlock   Confinement = "landlock" // where namespaces are refused: confines only files, TCP ports and signals
	Unconfined Confinement = "none"
)

// Container describes the container of a command. It has only the named capabilities and can gain no privileges. Its
// root is read-only unless Keep is set: it can write to its mounts and to /tmp, /var/tmp, /run and /dev/shm, which
// are in memory unless something is mounted there. The command's environment is added to the image's. The image's
// entry point is not used.
type Container struct {
	Image  string            // ID of an image in the engine
	Labels map[string]string // in addition to the labels of Docker.Labels
	Mounts []Mount
	Files  io.Reader // a tar archive that is unpacked at / before the start; nil: none
	User   string    // UID:GID; empty: the image's user
	CPUs   string    // cores that it may use, such as "0-3,8"; empty: all
	Memory int64     // bytes, swap included; 0: no limit
	Shm    int64     // bytes of /dev/shm; 0: half of the memory
	GPUs   []string  // UUIDs of its devices
	trial.Grants
	// it can reach other machines over its own network; otherwise it has only a loopback
	Outward bool
	Beside  Process // it shares the network of this container; nil: its own
	// the command runs in the container of this process; only Argv, Env, Dir and User count
	Within Process
	Keep   bool // it stays, stopped, until container.Engine.Remove, so that it can become an image
}

// Contained is a Process in a container.
type Contained interface {
	Process
	Container() string // the container's name
}

// Mount mounts a directory or file of the host, or a volume of the engine, in a container.
type Mount struct {
	Host     string // absolute path; empty: Volume is mounted
	Volume   string // name
	Inside   string // absolute path
	Writable bool
}

// Status is how a program ended. A failed program is a status, never an error.
type Status struct {
	Code   int    // exit status; -1 if a signal ended it
	Signal string // "SIGKILL"; empty: it exited
	Left   int    // processes that outlived it and had to be ended; 0 in a container, where they are not counted
	OOM    bool   // it was killed because it exceeded its memory limit
}

// OK reports whether the program exited with status 0.
func (s Status) OK() bool { return s.Code == 0 && s.Signal == "" }

// Process is a program that was started.
//
// Done is closed when the program itself has ended; its remaining descendants are then ended even if nobody waits.
// Wait returns the status after all descendants are gone; if ctx ends first, Wait stops everything and returns the
// cause of ctx. Stop sends SIGTERM and, after the grace time, SIGKILL; it may be called at any time and repeatedly.
type Process interface {
	Done() <-chan struct{}
	Wait(ctx context.Context) (Status, error)
	Stop() (Status, error)
}

// Executor starts commands. Start returns an error only if the command could not be run. The end of ctx stops the
// process, also after Start has returned.
type Executor interface {
	Start(ctx context.Context, cmd Command) (Process, error)
}

// Run starts cmd and waits for its end.
func Run(ctx context.Context, e Executor, cmd Command) (Status, error) {
	p, err := e.Start(ctx, cmd)
	if err != nil {
		return Status{}, err
	}
	return p.Wait(ctx)
}
