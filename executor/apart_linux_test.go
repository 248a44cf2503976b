package executor_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/family"
)

// vigil writes "here" when it begins, and what it finds in its file number 3 into "over" when its standard input is at
// its end.
const vigil = `cd "$0"; : > here; cat; cat <&3 > half; mv half over`

func startVigil(dir string) (done func() error, err error) {
	files, err := os.Open(filepath.Join(dir, "kept"))
	if err != nil {
		return nil, err
	}
	defer files.Close()
	return family.StartApart("/bin/sh", []string{"sh", "-euc", vigil, dir}, []*os.File{files})
}

func TestStartApartBelongsToNoCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("kept open\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := startVigil(dir)
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(exists(filepath.Join(dir, "here")))
	cmd := lasting(t, hidden)
	if s, err := executor.Run(t.Context(), executor.NewHost(executor.HostOptions{}), cmd); err != nil || s.Left == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if alive(t, cmd.Dir, "life") {
		t.Error("a daemon lives on since something apart is older than it")
	}
	if exists(filepath.Join(dir, "over"))() {
		t.Error("it was ended with a command")
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "over")); string(text) != "kept open\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// beApart starts something apart and a program, and ends in a hurry; or it does nothing more, and waits to be killed.
func beApart(dir string) {
	h := executor.NewHost(executor.HostOptions{Owner: dir})
	_, err := startVigil(dir)
	if err == nil {
		_, err = h.Start(context.Background(), executor.Command{Argv: []string{"sh", "-euc",
			"exec 9<>life; : > started; while :; do sleep 0.02; done"}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	waitUntil(exists(filepath.Join(dir, "started")))
	if exists(filepath.Join(dir, "hurry"))() {
		family.KillDescendants()
		waitUntil(exists(filepath.Join(dir, "go")))
		os.Exit(0)
	}
	if err := os.WriteFile(filepath.Join(dir, "hurry"), nil, 0o600); err != nil {
		os.Exit(1)
	}
	select {}
}

func TestStartApartOutlivesItsStarter(t *testing.T) {
	begin := func(t *testing.T, hurry bool) (dir string, starter *exec.Cmd) {
		dir = t.TempDir()
		mkfifo(t, filepath.Join(dir, "life"))
		for name, wanted := range map[string]bool{"kept": true, "hurry": hurry} {
			if wanted {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("kept open\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		starter = exec.Command(os.Args[0])
		starter.Env = append(os.Environ(), apartEnv+"="+dir)
		starter.Stderr = os.Stderr
		if err := starter.Start(); err != nil {
			t.Fatal(err)
		}
		waitUntil(exists(filepath.Join(dir, "started")))
		return dir, starter
	}
	t.Run("that ends in a hurry", func(t *testing.T) {
		dir, starter := begin(t, true)
		waitUntil(func() bool { return !alive(t, dir, "life") })
		if exists(filepath.Join(dir, "over"))() {
			t.Error("it was ended with the programs")
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := starter.Wait(); err != nil {
			t.Error(err)
		}
		waitUntil(exists(filepath.Join(dir, "over")))
	})
	t.Run("that is killed", func(t *testing.T) {
		dir, starter := begin(t, false)
		waitUntil(exists(filepath.Join(dir, "hurry")))
		if err := starter.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = starter.Wait()
		if n, err := family.Reap(t.Context(), dir); err != nil {
			t.Error(n, err)
		}
		waitUntil(exists(filepath.Join(dir, "over")))
	})
}
