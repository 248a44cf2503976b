//go:build linux && faults

package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var cuts = flag.Int("cuts", 20, "how often TestFaultPower takes the power away")

// drive is a file system in a file, from which the power can be taken.
type drive struct {
	t          *testing.T
	image, dir string
	starts     int
}

func newDrive(t *testing.T) *drive {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	d := &drive{t: t, image: filepath.Join(t.TempDir(), "image"), dir: t.TempDir()}
	check(t, os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 256<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v: %s", err, out)
	}
	if out, err := d.mount(); err != nil {
		t.Skipf("a file cannot be mounted here: %v: %s", err, out)
	}
	t.Cleanup(d.unmount)
	return d
}

func (d *drive) mount() ([]byte, error) {
	return exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput()
}

func (d *drive) unmount() {
	d.t.Helper()
	check(d.t, syscall.Unmount(d.dir, syscall.MNT_DETACH))
}

// cut does to a file system what a loss of power does: from now on nothing is written any more, and data that is only
// in memory is lost. ext4 and XFS have an ioctl for this.
func (d *drive) cut() {
	d.t.Helper()
	const shutdown = 2<<30 | 4<<16 | 'X'<<8 | 125
	const withoutLog = 2
	root, err := os.Open(d.dir)
	check(d.t, err)
	defer root.Close()
	if err := unix.IoctlSetPointerInt(int(root.Fd()), shutdown, withoutLog); err != nil {
		d.t.Skip("this file system cannot be shut down:", err)
	}
}

// again is the next start of the machine: the disk has its old content. It is a copy: another process that still looks
// at the first file system, such as a container, would have that one mounted again.
func (d *drive) again() {
	d.t.Helper()
	d.unmount()
	old := d.image
	d.starts++
	d.image = filepath.Join(filepath.Dir(old), fmt.Sprint("image", d.starts))
	if out, err := exec.Command("cp", "--sparse=always", old, d.image).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	if out, err := d.mount(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	check(d.t, os.Remove(old))
}

// TestFaultPower takes the power away at random moments, from project, store and state. Results that were reported as
// done are there afterwards, whole, and later applies come to the same end as without the loss.
func TestFaultPower(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("go test -tags faults -run TestFaultPower ./cmd/benchgraph -cuts %d -seed %d", *cuts, *seed)
	random := rand.New(rand.NewPCG(*seed, 2))
	d := newDrive(t)
	w := killWorld(t, d.dir)
	unix.Sync()

	done := map[string]string{}
	for count, round := 0, 0; count < *cuts; round++ {
		variable := fmt.Sprintf("round=%d", round)
		clear(done)
		check(t, os.RemoveAll(w.path("benchgraph.lock.hcl")), os.RemoveAll(w.path(".benchgraph/mirrors")))
		for finished := false; !finished && count < *cuts; count++ {
			code, said := w.cut(d, random, variable)
			finished = code == 0
			w.keeps(done, said, variable)
			if t.Failed() {
				t.Fatalf("after cut %d, having said:\n%s", count, said)
			}
		}
		w.must(0, "apply", "-var", variable)
		got := w.finds("-var", variable)
		for i := range 9 {
			if line := fmt.Sprintf("round %d chain %d\n", round, i+1); !strings.Contains(got.all, line) {
				t.Errorf("all has no %q: %q", line, got.all)
			}
		}
		if !exists(w.path("report", "report.md")) {
			t.Error("no report was written")
		}
	}
}

// cut starts an apply and takes the power away: after a time, or soon after an event. It returns when the machine is up
// again.
func (w *world) cut(d *drive, random *rand.Rand, variable string) (code int, said string) {
	w.t.Helper()
	cmd := w.command("apply", "-json", "-var", variable)
	out, err := cmd.StdoutPipe()
	check(w.t, err, cmd.Start())
	after, events := time.Duration(random.IntN(1_500_000))*time.Microsecond, 0
	switch random.IntN(3) {
	case 0:
		after /= 5 // while revisions are looked up
	case 1:
		after, events = time.Duration(random.IntN(50_000))*time.Microsecond, 1+random.IntN(100)
	}
	off := sync.OnceFunc(func() {
		d.cut()
		_ = cmd.Process.Kill() // it may be at its end
	})
	if events == 0 {
		defer time.AfterFunc(after, off).Stop()
	}
	var lines strings.Builder
	for s, n := bufio.NewReader(out), 1; ; n++ {
		line, err := s.ReadString('\n')
		lines.WriteString(line)
		if n == events {
			defer time.AfterFunc(after, off).Stop()
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Wait() // killed
	off()          // when it was faster
	for _, p := range marked(map[int]bool{cmd.Process.Pid: true}) {
		pid, _, _ := strings.Cut(p, " ")
		_ = syscall.Kill(number(pid), syscall.SIGKILL)
	}
	d.again()
	return cmd.ProcessState.ExitCode(), lines.String()
}
