package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// TestMain makes benchgraph, and the small programs that the stories measure, commands of the scripts.
func TestMain(m *testing.M) {
	programs := map[string]func(){
		"benchgraph": main,
		"sample":     printSample,
		"serve":      serve,
		"ask":        ask,
		"s3":         serveS3,
	}
	testscript.Main(mixed{m, programs}, programs)
}

// named names this program without the race detector; make unit sets it. A process under the detector takes some 60 ms
// to start, and the stories start thousands.
var named = os.Getenv("BENCHGRAPH_TEST_PROGRAM")

// mixed are the tests whose benchgraph applies under the race detector. Its other commands, and the other programs, run
// without the detector.
type mixed struct {
	*testing.M
	programs map[string]func()
}

func (m mixed) Run() int {
	if !needtest.UnderRace || named == "" {
		return m.M.Run()
	}
	dir, err := os.MkdirTemp("", "benchgraph-test")
	if err == nil {
		defer os.RemoveAll(dir)
		err = m.mix(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return m.M.Run()
}

// mix puts the programs into a directory. They are copies, since a sandbox may show only that directory.
func (m mixed) mix(dir string) error {
	program, err := os.ReadFile(named)
	if err != nil {
		return err
	}
	for name := range m.programs {
		content := program
		if name == "benchgraph" {
			watched, _ := exec.LookPath(name) // what testscript made of this program
			content = fmt.Appendf(nil, `#!/bin/sh
case " $* " in
*" apply "*) exec '%s' "$@" ;;
*) exec '%s' "$@" ;;
esac
`, watched, named)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// TestScript runs the stories below testdata/script.
func TestScript(t *testing.T) { runScripts(t, "testdata/script") }

func runScripts(t *testing.T, dir string) { testscript.Run(t, scriptParams(dir)) }

// scriptParams say how the stories of a directory are run.
func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Condition: func(name string) (bool, error) {
			switch name {
			case "race":
				return needtest.UnderRace && named == "", nil
			case "namespaces": // of process numbers can be made
				return exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").Run() == nil, nil
			case "sandbox": // commands on the host can have namespaces of their own
				return executor.CheckSandbox() == nil, nil
			case "landlock": // can keep commands to their own files and ports
				return executor.LandlockVersion() >= 4, nil
			}
			return false, fmt.Errorf("no condition is called %q", name)
		},
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Setenv("BENCHGRAPH_HOST_LOCK", filepath.Join(home, "host.lock"))
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "Ada")
				env.Setenv("GIT_"+who+"_EMAIL", "ada@example.org")
				env.Setenv("GIT_"+who+"_DATE", "2024-01-01T00:00:00Z")
			}
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			// a program with the race detector ends a second late otherwise, each time
			env.Setenv("GORACE", "atexit_sleep_ms=10")
			env.Setenv("BENCHGRAPH_TEST_PROGRAM", named)
			recompute, err := filepath.Abs(filepath.Join("..", "..", "docs", "recompute.py"))
			env.Setenv("RECOMPUTE", recompute)
			return errors.Join(err, os.MkdirAll(home, 0o755))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"json":       jsonAt,
			"await":      await,
			"documented": documented,
			"printable":  printableFile,
			"nvml":       nvml,
		},
	}
}

// nvml makes the script's benchgraph see the GPUs of a scenario: nvml FILE
func nvml(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nvml FILE")
	}
	dir, err := os.MkdirTemp(ts.Getenv("WORK"), "nvml")
	ts.Check(err)
	library, err := nvmltest.Build(dir, false)
	ts.Check(err)
	ts.Setenv("BENCHGRAPH_NVML", library)
	ts.Setenv("NVML_SCENARIO", ts.MkAbs(args[0]))
}

// exits runs a command and checks its exit code: exits CODE COMMAND ARG...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// jsonAt checks a value in a JSON file, or in the line N of a file with a document a line: json FILE[:N] PATH PATTERN.
// A PATH is names and indexes separated by dots; name=value picks the element of a list by a field, len is its length.
// A negative N counts from the end.
func jsonAt(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE[:LINE] PATH PATTERN")
	}
	file, line, numbered := strings.Cut(args[0], ":")
	text := ts.ReadFile(file)
	if numbered {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		n, err := strconv.Atoi(line)
		ts.Check(err)
		if n < 0 {
			n += len(lines) + 1
		}
		text = lines[n-1]
	}
	var v any
	ts.Check(json.Unmarshal([]byte(text), &v))
	for step := range strings.SplitSeq(args[1], ".") {
		v = descend(v, step)
	}
	got := fmt.Sprint(v)
	if v == nil {
		got = "null"
	}
	if regexp.MustCompile(`^(?:`+args[2]+`)$`).MatchString(got) == neg {
		ts.Fatalf("%s of %s is %s, want (%v) %s", args[1], args[0], got, !neg, args[2])
	}
}

func descend(v any, step string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[step]
	case []any:
		if step == "len" {
			return len(v)
		}
		if name, value, ok := strings.Cut(step, "="); ok {
			for _, item := range v {
				if m, ok := item.(map[string]any); ok && fmt.Sprint(m[name]) == value {
					return item
				}
			}
			return nil
		}
		if i, err := strconv.Atoi(step); err == nil && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// printableFile checks that nothing in a file moves a cursor or hides text: printable FILE.
func printableFile(ts *testscript.TestScript, neg bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "\r\n", "\n") // lines of CSV
	for n, line := range strings.Split(text, "\n") {
		hidden := strings.ContainsFunc(strings.ReplaceAll(line, "\t", ""), func(r rune) bool {
			return !unicode.IsPrint(r)
		})
		if hidden || !utf8.ValidString(line) {
			ts.Fatalf("%s:%d: %q", args[0], n+1, line)
		}
	}
}

// await waits until a file exists: await FILE.
func await(ts *testscript.TestScript, neg bool, args []string) {
	path := ts.MkAbs(args[0])
	for range 1000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s did not appear", args[0])
}

// printSample prints a number that is near VALUE by a relative NOISE: sample VALUE NOISE.
func printSample() {
	value, _ := strconv.ParseFloat(os.Args[1], 64)
	noise, _ := strconv.ParseFloat(os.Args[2], 64)
	fmt.Printf("work done: %.6f items/s\n", value*(1+noise*(rand.Float64()-0.5)))
}

// serve answers on the port PORT until it is ended: serve SPEED. Its page /speed shows the speed; with the speed
// "break" it breaks each connection.
func serve() {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("/speed", func(w http.ResponseWriter, _ *http.Request) {
		if os.Args[1] == "break" {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, os.Args[1]+"\n")
	})
	fmt.Println("serving")
	fmt.Println(http.ListenAndServe(net.JoinHostPort("127.0.0.1", os.Getenv("PORT")), mux))
	os.Exit(1)
}

// ask prints what the server answers: ask PATH.
func ask() {
	resp, err := http.Get("http://" + net.JoinHostPort("127.0.0.1", os.Getenv("PORT")) + os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer resp.Body.Close()
	io.Copy(os.Stdout, resp.Body)
}
