// Package executor runs foreign commands and answers for their end: when Stop or Wait returns, nothing that the command
// started is left.
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
	// the whole environment, as NAME=value; nothing is added but BENCHGRAPH_PROC, by which descendants are found
	Env     []string
	Stdin   io.Reader     // nil: empty
	Stdout  io.Writer     // gets everything, in order; nil: discarded
	Stderr  io.Writer     // may be the same as Stdout
	Secrets []string      // values that are replaced by *** before they reach Stdout or Stderr
	Grace   time.Duration // between the polite signal and the last one; 0: 5 s

	Container *Container // nil: on the host; else Dir is a path in the container
	Sandbox   *Sandbox   // on the host: what it sees of that; nil: all
	Limits    *Limits    // on the host: what it may use, where the machine enforces that (see Enforced); nil: all
}

// Limits are what a command on the host may use of it, together with all that it starts.
type Limits struct {
	Memory int64  // bytes, swap included; 0: no limit
	Cores  string // such as "0-3,8"; empty: all
	CPUs   int    // how many cores' worth of time, where Cores is empty or not enforced; 0: no limit
}

// Enforcement says which limits of commands on the host a machine enforces.
type Enforcement struct {
	Memory, Processes bool
	CPUs              bool // how much time, or which cores
	Cores             bool // which cores
}

// Sandbox says what a command on the host sees of it (Linux). It runs in namespaces of its own, without any privilege:
// it sees no other processes, no network but a loopback, no devices but the usual ones and those that are named, and
// the files of the system, read-only. The homes of users, /run, and what else is hidden are empty. It can write to
// Dir, to a /tmp, /dev/shm and home of its own, and to what is shown as writable. All that it started ends with it.
// Landlock says the same of files and signals once more. Where the kernel refuses namespaces, Landlock stands alone:
// see Confinement.
type Sandbox struct {
	Hidden  []string // directories that are empty for it, such as that of the project
	Shown   []Mount  // what it sees of them; without Inside, under the same path
	Tmp     string   // directory that it has as /tmp and /var/tmp; empty: one in memory
	Home    string   // directory that it has as its home; empty: Tmp
	GPUs    []string // UUIDs of the devices that it gets, or of those whose instances it gets
	Network bool     // it reaches what this machine reaches
	Ports   []int    // of the loopback, that it needs where there are no namespaces
	Beside  Process  // its loopback is that of this process, which is in a sandbox without Network; nil: its own
}

// Confinement is a way in which this machine confines commands that have a Sandbox.
type Confinement string

// The confinements, the strongest first.
const (
	Namespaces Confinement = "namespaces"
	Landlock   Confinement = "landlock" // where namespaces are refused: files, TCP ports and signals alone
	Unconfined Confinement = "none"
)

// Container says in what kind of container a command runs. All capabilities are dropped but those that are named, no
// new privileges can be had, and its root is read-only unless Keep is set: it can write to its mounts, and to /tmp,
// /var/tmp, /run and /dev/shm, which are in memory unless a mount is there. Its environment is that of the image, then
// that of the command; the image's entry point is not used.
type Container struct {
	Image  string            // ID of an image that the engine has
	Labels map[string]string // beside those by which it is found again
	Mounts []Mount
	Files  io.Reader // a tar that is unpacked at / before it starts; nil: none
	User   string    // UID:GID; empty: what the image says
	CPUs   string    // cores that it may use, such as "0-3,8"; empty: all
	Memory int64     // bytes, swap included; 0: no limit
	Shm    int64     // bytes of /dev/shm; 0: half of the memory
	GPUs   []string  // UUIDs of the devices that it gets
	trial.Grants
	// it may reach beyond this machine, over a network of its own; else it has none but its loopback
	Outward bool
	Beside  Process // its network is that of this container; nil: its own
	// it is no container of its own: the command runs in that one, and only Argv, Env, Dir and User count
	Within Process
	Keep   bool // it stays, stopped, until container.Engine.Remove: it is to become an image
}

// Contained is a Process in a container.
type Contained interface {
	Process
	Container() string // by which the engine knows it
}

// Mount lays a directory or file of the host, or a volume of the engine, into a container.
type Mount struct {
	Host     string // absolute path; empty: Volume is mounted
	Volume   string // name
	Inside   string // absolute path
	Writable bool
}

// Status is how a program ended. A status is data, never an error.
type Status struct {
	Code   int    // exit status; -1 when a signal ended it
	Signal string // "SIGKILL"; empty: it exited
	Left   int    // processes that outlived it and had to be ended; 0 in a container, whose engine does not know
	OOM    bool   // it was ended because it used more memory than it may
}

// OK says whether the program exited with status 0.
func (s Status) OK() bool { return s.Code == 0 && s.Signal == "" }

// Process is a program that was started.
//
// Done is closed when the program itself has ended; what it left behind is then ended, whether or not anybody waits.
// Wait returns its status after all its descendants are gone; when ctx ends first, it stops everything and returns
// ctx's cause as the error. Stop ends it politely, then firmly; it is safe at any time and any number of times.
type Process interface {
	Done() <-chan struct{}
	Wait(ctx context.Context) (Status, error)
	Stop() (Status, error)
}

// Executor starts commands. An error means that the command could not be run at all. The end of ctx stops the process,
// also after Start has returned.
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
