//go:build linux || darwin

package family

import (
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/benchgraph/benchgraph/executor/internal/thread"
)

// apart holds the programs of this process that belong to no command. The key is the process number, which is also
// the session's. The value is our end of the pipe to the program: without a reference, the finalizer would close it.
var apart = struct {
	sync.Mutex
	pipes map[int]*os.File
}{pipes: map[int]*os.File{}}

// isApart reports whether a session is that of a program that belongs to no command.
func isApart(session int) bool {
	apart.Lock()
	defer apart.Unlock()
	return apart.pipes[session] != nil
}

// StartApart starts a program that outlives this process, however this process ends. The program has its own session
// and belongs to no command. Neither KillDescendants nor a later Reap ends it. Its standard input ends when this
// process ends or calls done, which also waits for the program. The files are open in the program from number 3 on.
// Its output is discarded.
func StartApart(path string, argv []string, files []*os.File) (done func() error, err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Dir: "/", Stdin: theirs, ExtraFiles: files,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	started, ended := make(chan error, 1), make(chan struct{})
	// Family.gone reads the children of two threads: the thread that started a command and the main thread, which
	// adopts orphans. So another thread starts this child and lives as long as the child does.
	thread.Go(func() {
		defer close(ended)
		apart.Lock() // isApart waits until the program is registered
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
		_ = cmd.Wait() // its status does not matter
		apart.Lock()
		defer apart.Unlock()
		delete(apart.pipes, cmd.Process.Pid)
		return err
	}, nil
}
