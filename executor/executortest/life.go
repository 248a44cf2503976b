package executortest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
)

// lasting returns a shell command that runs script. The command and all its descendants hold a named pipe open. The
// kernel closes the pipe with the last of them, so the test needs no process numbers, which mean little in another
// machine or container. The script makes the file "up" once it is ready, after it has set its traps.
func lasting(t *testing.T, script string) (executor.Command, life) {
	cmd := Shell(t, "exec 9<>life; "+script)
	fifo := filepath.Join(cmd.Dir, "life")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return cmd, life(fifo)
}

type life string

func (l life) mustNot(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(string(l), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if !errors.Is(err, syscall.ENXIO) {
		t.Errorf("the command left a process (opening its pipe: %v)", err)
	}
	f.Close()
}

// waitFor waits until the command has made the file.
func waitFor(t *testing.T, p executor.Process, cmd executor.Command, file string) {
	t.Helper()
	for {
		if _, err := os.Stat(filepath.Join(cmd.Dir, file)); err == nil {
			return
		}
		select {
		case <-p.Done():
			s, err := p.Wait(t.Context())
			t.Fatalf("ended before it made %q: %+v, %v", file, s, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
