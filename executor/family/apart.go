//go:build linux || darwin

package family

import (
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/benchgraph/benchgraph/executor/internal/thread"
)

// apart are the programs of this process that belong to no command, by process number, which is also that of their
// session, with our ends of their pipes: one that nobody refers to would be closed some day.
var apart = struct {
	sync.Mutex
	pipes map[int]*os.File
}{pipes: map[int]*os.File{}}

// isApart says whether a session is that of a program that belongs to no command.
func isApart(session int) bool {
	apart.Lock()
	defer apart.Unlock()
	return apart.pipes[session] != nil
}

// StartApart starts a program that is to outlive this process, whatever ends it: it has a session of its own, is part
// of no command, and is not ended with what this process has started, neither by KillDescendants nor by a later Reap.
// Its standard input is at its end once this process is gone or has called done, which waits for the program's end. The
// files are open in it from number 3 on. What it prints is thrown away.
func StartApart(path string, argv []string, files []*os.File) (done func() error, err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Dir: "/", Stdin: theirs, ExtraFiles: files,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	started, ended := make(chan error, 1), make(chan struct{})
	// By the children of a thread it is told what is left of a command that the thread started, and by those of the
	// main one what it adopted. So this is a child of another one, as long as it lives.
	thread.Go(func() {
		defer close(ended)
		apart.Lock() // who looks at the children of this process meanwhile waits until it can tell this one
		err := cmd.Start()
		if err == nil {
			apart.pipes[cmd.Process.Pid] = ours
		}
		apart.Unlock()
		started <- err
		if err == nil {
			AwaitExit(cmd.Process)
		}
	})
	err = <-started
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	return func() error {
		err := ours.Close()
		<-ended
		_ = cmd.Wait() // how it ended tells nothing that it has not left
		apart.Lock()
		defer apart.Unlock()
		delete(apart.pipes, cmd.Process.Pid)
		return err
	}, nil
}
