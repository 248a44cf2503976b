// Package first is the first process of a sandbox: it waits for its Spec, sets up the namespaces in which it was
// started, runs one program there, and ends the program's descendants.
//
// The first process is this program, started again. It must recognize itself before most other packages are
// initialized, so every program that imports this package can be a first process. The package therefore imports
// little: no net, no os/exec, no path/filepath.
package first

import "time"

// Spec describes the work of the first process.
type Spec struct {
	Path string   // path of the program; empty: Argv[0] is looked up in the PATH of Env
	Argv []string // arguments of the program
	Env  []string // environment of the program, as NAME=value
	Dir  string   // its working directory

	Empty    []string // directories of the host that are shown as empty, and files that cannot be opened
	Binds    []Bind
	Devices  []string // nodes below /dev
	Most     int      // limit of processes and threads, from Linux 6.14 on
	Loopback bool     // bring up the loopback of a new network namespace
	Trial    bool     // run no program: only set up its surroundings
	Fence    *Fence   // nil: no fence

	Settle time.Duration // how long the program's descendants may take to end by themselves
	Grace  time.Duration // then from SIGTERM to SIGKILL
}

// Bind shows a file or directory of the host, with everything that is mounted below it.
type Bind struct {
	From, To string // absolute paths; From empty: an empty directory in memory
	Writable bool
}

// Fence is what Landlock lets the program reach. It never allows more than other rules do.
type Fence struct {
	Read    []string // files and directory trees that it may read and execute
	Write   []string // files and directory trees to which it has all rights
	Ports   []int    // TCP ports, of this machine and others, that it may use; nil: all
	Sockets bool     // deny abstract sockets of processes outside
}

// The names (argv[0]) under which this program is started as such a process. No person's command line begins with
// these words.
const (
	Name      = "benchgraph: first process of a sandbox"
	JoinName  = "benchgraph: joins a sandbox"
	FenceName = "benchgraph: goes behind a fence"
)

// Message is a message between the first process and the process that started it.
type Message struct {
	// From the first process.
	Started bool     `json:",omitempty"` // the program runs
	Failed  *Refusal `json:",omitempty"` // the program does not run; last message
	Ended   *Ended   `json:",omitempty"` // the program has ended
	Gone    *Gone    `json:",omitempty"` // the first process ends; last message
	Dialled *Dialled `json:",omitempty"` // answer to Dial; the connection comes with it

	// To the first process.
	Begin bool `json:",omitempty"` // with the Spec, the program's streams and perhaps its control group
	Stop  bool `json:",omitempty"` // end everything
	Dial  int  `json:",omitempty"` // connect to this port of the loopback
}

// Refusal is a step of the set-up that the kernel refused.
type Refusal struct {
	Step  string // such as "mount /proc"; empty: the start of the program
	Errno int
}

// Ended is how the program ended.
type Ended struct {
	Code   int // exit status; -1 when a signal ended it
	Signal int
}

// Gone describes the namespaces when the first process ends.
type Gone struct {
	Alone bool // only the first process and little memory are left; false: wait until the namespaces are gone
	Left  int  // processes that outlived the program and had to be ended
}

// Dialled is the result of a Dial.
type Dialled struct{ Port, Errno int }
