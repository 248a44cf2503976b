// Package first is the first process of a sandbox: it waits for its Spec, sets up the namespaces that it finds itself
// in, runs one program there, and ends all that this leaves.
//
// It is this very program, started again. What it is is found out before most other packages are set up, so every
// program that imports this package can be one. The package therefore imports little: no net, no os/exec, no
// path/filepath.
package first

import "time"

// Spec is all that the first process is told.
type Spec struct {
	Path string   // of the program; empty: Argv[0] is looked up in the PATH of Env
	Argv []string // of the program
	Env  []string // of the program, as NAME=value
	Dir  string   // its working directory

	Empty    []string // directories of the host that are shown empty
	Binds    []Bind
	Devices  []string // nodes below /dev
	Most     int      // processes and threads that there may be; heeded from Linux 6.14 on
	Loopback bool     // the network namespace is new: its loopback is brought up
	Trial    bool     // there is no program: only what is around it is set up
	Fence    *Fence   // nil: none

	Settle time.Duration // what the program leaves may take to end by itself
	Grace  time.Duration // then between the polite signal and the last one
}

// Bind shows a file or directory of the host. What is below it on other mounts is shown, too.
type Bind struct {
	From, To string // absolute paths; From empty: nothing, in memory
	Writable bool
}

// Fence is what Landlock lets the program reach, whatever else it may do.
type Fence struct {
	Read    []string // files, and directories with all below them, that it may read and execute
	Write   []string // likewise, where it may do all
	Ports   []int    // the TCP ports that it may use, by number, of this machine and of others; nil: all
	Sockets bool     // abstract sockets of others are out of reach
}

// The names by which this program is started as such a process. No command line of a person begins with these words.
const (
	Name      = "benchgraph: first process of a sandbox"
	JoinName  = "benchgraph: joins a sandbox"
	FenceName = "benchgraph: goes behind a fence"
)

// Message is what the first process and who started it tell each other.
type Message struct {
	// From the first process.
	Started bool     `json:",omitempty"` // the program runs
	Failed  *Refusal `json:",omitempty"` // it does not, and nothing else comes
	Ended   *Ended   `json:",omitempty"` // the program has ended
	Gone    *Gone    `json:",omitempty"` // the first process ends, and nothing else comes
	Dialled *Dialled `json:",omitempty"` // the answer to Dial; the connection comes with it

	// To the first process.
	Begin bool `json:",omitempty"` // the Spec comes with it, the program's streams, and perhaps its control group
	Stop  bool `json:",omitempty"` // end it all
	Dial  int  `json:",omitempty"` // connect to this port of the loopback
}

// Refusal says which step of the set-up the kernel refused.
type Refusal struct {
	Step  string // such as "mount /proc"; empty: the program itself could not be started
	Errno int
}

// Ended is how the program ended.
type Ended struct {
	Code   int // exit status; -1 when a signal ended it
	Signal int
}

// Gone is what the program left in the namespaces.
type Gone struct {
	Alone bool // nothing is there any more but the first process, and little memory; else that ends first
	Left  int
}

// Dialled is how a connection came about.
type Dialled struct{ Port, Errno int }
