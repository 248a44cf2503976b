package repro

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// run runs a script and returns what it prints on stdout.
func run(t *testing.T, script string, env ...string) string {
	t.Helper()
	cmd := exec.Command("sh", "-s")
	cmd.Stdin = strings.NewReader(script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), "TMPDIR="+t.TempDir()), env...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &problem, script)
	}
	return string(out)
}

// attempt runs commands on this machine, and notes them.
type attempt struct {
	t   *testing.T
	env *engine.Env
}

func begin(t *testing.T, inputs ...engine.Input) attempt {
	env := &engine.Env{Work: t.TempDir(), Scratch: t.TempDir(), Inputs: inputs}
	if err := os.Mkdir(filepath.Join(env.Scratch, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	return attempt{t, env}
}

// run runs a command, and returns its output.
func (a attempt) run(cmd executor.Command) string {
	a.t.Helper()
	host := executor.NewHost(executor.HostOptions{})
	defer host.Close()
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.env.Work, &out, &out
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "OUT=" + filepath.Join(a.env.Scratch, "out")}, cmd.Env...)
	status, err := executor.Run(context.Background(), transcript.Of(a.env).Executor(host), cmd)
	if err != nil || !status.OK() {
		a.t.Fatalf("%v, %+v\n%s", err, status, out.String())
	}
	return out.String()
}

// script returns the script of the commands that ran, as the store keeps it.
func (a attempt) script(stored func(cache.Key) (string, bool)) (string, error) {
	a.t.Helper()
	text, err := json.Marshal(a.env.Transcript)
	if err != nil {
		a.t.Fatal(err)
	}
	read, err := transcript.Parse(text)
	if err != nil {
		a.t.Fatal(err)
	}
	return Attempt{Title: "a\nrm -rf /", Transcript: read, Stored: stored}.Script()
}

func (a attempt) mustScript() string {
	a.t.Helper()
	script, err := a.script(func(cache.Key) (string, bool) { return "", false })
	if err != nil {
		a.t.Fatal(err)
	}
	return script
}

// Whatever is in the words and variables of a command, the script prints the same as the command.
func TestAScriptDoesWhatTheAttemptDidAndNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hostile := rapid.StringOf(rapid.SampledFrom([]rune("a '\"\\$`(){};&|<>*?#!~\n-=OUT")))
		word, value := hostile.Draw(rt, "word"), hostile.Draw(rt, "value")
		a := begin(t)
		want := a.run(executor.Command{Argv: []string{"printf", "%s,%s", word, "x"}})
		want += a.run(executor.Command{Env: []string{"VALUE=" + value},
			Argv: []string{"sh", "-euc", `printf %s "$VALUE"; printf %s "$VALUE" >$OUT/file`}})
		transcript.Of(a.env).Section("", "# "+word, false)
		script := a.mustScript()
		if got := run(t, script); got != want || got != word+",x"+value {
			rt.Fatalf("the script prints %q, and the attempt printed %q\n%s", got, want, script)
		}
	})
}

// Directories of the attempt are directories of the script. Paths that only begin like them stay.
func TestDirectoriesOfTheAttemptAreReplaced(t *testing.T) {
	a := begin(t)
	a.run(executor.Command{Argv: []string{"sh", "-euc", "echo made >" + a.env.Work + "/file; echo it >$OUT/it"}})
	a.run(executor.Command{Argv: []string{"sh", "-euc",
		"cat " + a.env.Work + "/file $OUT/it; echo " + a.env.Work + "1"}})
	if err := os.RemoveAll(a.env.Work); err != nil {
		t.Fatal(err)
	}
	if got, want := run(t, a.mustScript()), "made\nit\n"+a.env.Work+"1\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := os.Stat(a.env.Work); err == nil {
		t.Error("the script wrote to the directory of the attempt")
	}
}

// A file that the transcript lacks ends the script: nothing runs without it.
func TestAFileThatIsNotHeldIsAskedFor(t *testing.T) {
	a := begin(t)
	transcript.Of(a.env).Wrote(filepath.Join(a.env.Work, "text"), []byte("it's $HOME\n"))
	transcript.Of(a.env).Wrote(filepath.Join(a.env.Work, "binary"), []byte("\x00\xff"))
	a.run(executor.Command{Argv: []string{"echo", "run"}})
	cmd := exec.Command("sh", "-s")
	cmd.Stdin, cmd.Env = strings.NewReader(a.mustScript()), append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "binary is to be the file with SHA-256 06eb7d6a69ee19e5") ||
		strings.Contains(string(out), "run\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// An input is taken from the store, wherever it is there now. The script reports a missing one.
func TestInputsComeFromTheStore(t *testing.T) {
	key := cache.KeyOf("input")
	in := engine.Input{Address: `task.data["a b"]`, Entry: cache.Entry{Meta: cache.Meta{Key: key}, Dir: t.TempDir()}}
	other := engine.Input{Address: "task.unused", Entry: cache.Entry{Dir: t.TempDir()}}
	if err := os.WriteFile(filepath.Join(in.Dir, "data"), []byte("of the input"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := begin(t, in, other)
	transcript.Of(a.env).Did("tree", in.Dir, filepath.Join(a.env.Work, "tree"))
	if err := os.CopyFS(filepath.Join(a.env.Work, "tree"), os.DirFS(in.Dir)); err != nil {
		t.Fatal(err)
	}
	a.run(executor.Command{Argv: []string{"sh", "-euc", "cat tree/data " + in.Dir + "/data"}})
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(in.Dir, moved); err != nil {
		t.Fatal(err)
	}
	script, err := a.script(func(k cache.Key) (string, bool) { return moved, k == key })
	if err != nil || strings.Contains(script, "unused") {
		t.Fatalf("%v\n%s", err, script)
	}
	if got, want := run(t, script), "of the inputof the input"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	cmd := exec.Command("sh", "-c", a.mustScript())
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "benchgraph apply -target") {
		t.Errorf("%v: %s", err, out)
	}
}

// The script has only the name of a secret, wherever its value stood.
func TestAScriptAsksForSecrets(t *testing.T) {
	a := begin(t)
	const value = "xyzzy-plugh"
	want := a.run(executor.Command{Argv: []string{"sh", "-euc", "printf %s $TOKEN | wc -c; : " + value},
		Env: []string{"OTHER=" + value + "-more", "TOKEN=" + value}, Secrets: []string{value}})
	script := a.mustScript()
	if strings.Contains(script, value) || !strings.Contains(script, "TOKEN") {
		t.Errorf("the script holds the secret, or does not ask for it:\n%s", script)
	}
	if got := run(t, script, "TOKEN="+value); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A transcript that is from a newer version, or made up, is refused or harmless.
func TestATranscriptIsNotBelieved(t *testing.T) {
	for _, text := range []string{
		`{"steps":[]}`, `{"steps":[{"title":"nothing"}]}`, `{"steps":[{"did":["rm","-rf","/"]}]}`,
		`{"steps":[{"argv":["true"],"place":3}]}`, `{"steps":[{"argv":["true"],"place":-1}]}`,
	} {
		read, err := transcript.Parse([]byte(text))
		if err == nil {
			var script string
			if script, err = (Attempt{Transcript: read}).Script(); err == nil {
				t.Errorf("%s is believed:\n%s", text, script)
			}
		}
	}
}
