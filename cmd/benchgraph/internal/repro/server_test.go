package repro

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// served returns the script of a command beside a server. Both are texts of sh, with the port as $0.
func served(t *testing.T, server, command string, ready transcript.Ready) string {
	t.Helper()
	tr := &transcript.Transcript{Work: "/attempt/work", Scratch: "/attempt/scratch",
		Places: []transcript.Place{{Dir: "/attempt/work", Env: []string{"PATH=" + os.Getenv("PATH")}}}}
	for _, word := range []string{"one", "two"} {
		tr.Steps = append(tr.Steps,
			transcript.Step{Argv: []string{"sh", "-c", server, ready.Port, word}, Server: &ready},
			transcript.Step{Argv: []string{"sh", "-c", command, ready.Port}},
			transcript.Step{Stop: len(tr.Steps) + 1})
	}
	text, err := Attempt{Transcript: tr}.Script()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// A server may have started programs of its own. They end with the server, so none of them answers the next command.
func TestAServerEndsWithAllItStarted(t *testing.T) {
	place := t.TempDir()
	child := fmt.Sprintf(`exec sleep 600 & echo $! >>%s/pids; `+
		`echo up; wait; echo ended`, place)
	run(t, served(t, child, "true", transcript.Ready{Log: "^up$", Port: freePort(t)}))
	pids, err := os.ReadFile(filepath.Join(place, "pids"))
	if err != nil || len(strings.Fields(string(pids))) != 2 {
		t.Fatalf("%v: %q", err, pids)
	}
	for _, pid := range strings.Fields(string(pids)) {
		runs := func() bool {
			stat, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
			return err == nil && !strings.HasPrefix(string(stat), "Z")
		}
		for left := 100; left > 0 && runs(); left-- {
			time.Sleep(20 * time.Millisecond)
		}
		if runs() {
			_ = exec.Command("kill", "-9", pid).Run()
			t.Errorf("process %s of a stopped server runs on", pid)
		}
	}
}

// The number of a server that was stopped may belong to another program when the script ends.
func TestAServerIsStoppedOnce(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\necho \"$1\" >>"+bin+"/calls\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	run(t, served(t, "echo up; exec sleep 600", "true", transcript.Ready{Log: "^up$"}))
	if calls, err := os.ReadFile(filepath.Join(bin, "calls")); string(calls) != "rm\nrm\n" {
		t.Errorf("two servers were stopped by %q, %v", calls, err)
	}
}

// Patterns of ready are those of Go, which a search by POSIX does not know.
func TestAScriptWaitsForALine(t *testing.T) {
	for _, pattern := range []string{`^ready: [0-9]+ (slots|places)$`, `(?i)READY:\s\d+`, `ready: (?:3|4)\b`} {
		script := served(t, "echo ready: 4 slots; exec sleep 600", "echo asked", transcript.Ready{Log: pattern})
		if got := run(t, script); got != "asked\nasked\n" {
			t.Errorf("%s: %q", pattern, got)
		}
	}
}

// Another program on the port of the server would answer the command in its place.
func TestAPortInUseEndsAScript(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	script := served(t, "exec sleep 600", "echo asked", transcript.Ready{Port: port})
	cmd := exec.Command("sh", "-s")
	cmd.Stdin, cmd.Env = strings.NewReader(script), append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "port "+port+" is in use") ||
		strings.Contains(string(out), "asked") {
		t.Errorf("%v: %s", err, out)
	}
}

// A script may come from standard input. No command reads the rest of the script there.
func TestACommandDoesNotReadTheScript(t *testing.T) {
	a := begin(t)
	a.run(executor.Command{Argv: []string{"cat"}})
	a.run(executor.Command{Argv: []string{"echo", "second"}})
	if got := run(t, a.mustScript()); got != "second\n" {
		t.Errorf("%q", got)
	}
}

// A missing program ends the script before any command. Nothing waits for an answer that cannot come.
func TestAMissingProgramEndsAScript(t *testing.T) {
	script := served(t, "exec sleep 600", "echo asked", transcript.Ready{HTTP: "/health", Port: freePort(t)})
	bin := t.TempDir()
	for _, name := range []string{"sh", "mktemp", "mkdir", "sleep", "grep", "rm"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "sh"), "-s")
	cmd.Stdin, cmd.Env = strings.NewReader(script), []string{"PATH=" + bin, "TMPDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "needs the program curl") ||
		strings.Contains(string(out), "asked") {
		t.Errorf("%v: %s", err, out)
	}
}

// If the image of a node or the mirror of its repository is gone, the script names the command that runs the node anew:
// an image that is made again has another ID.
func TestAPlaceThatIsGoneEndsAScript(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := &transcript.Transcript{Places: []transcript.Place{{Container: &transcript.Container{Image: "sha256:1"}}},
		Steps: []transcript.Step{{Argv: []string{"true"}}}}
	mirror := &transcript.Transcript{Steps: []transcript.Step{{Did: []string{"checkout", bin + "/gone", "HEAD", "/w"}}}}
	for _, tr := range []*transcript.Transcript{image, mirror} {
		script, err := Attempt{Node: `trial.a["b#1"]`, Transcript: tr}.Script()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-s")
		cmd.Stdin = strings.NewReader(script)
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), `benchgraph apply -replace 'trial.a["b#1"]'`) {
			t.Errorf("%v: %s", err, out)
		}
	}
}
