package shell_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/input"
)

// journal is the log of an attempt.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// world returns a machine that plays its commands, and an attempt at a node with one input.
func world(t *testing.T, fake *executortest.Fake) (c shell.Config, env *engine.Env, log *journal, at shell.Place) {
	dir := t.TempDir()
	input := filepath.Join(dir, "input")
	if err := os.MkdirAll(input, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(input, "a.txt"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	log = &journal{}
	c = shell.Config{
		Host: fake, Containers: fake, Environ: []string{"PATH=/bin", "HOME=/home/me"},
		Secret: func(name string) (string, bool) { return "s3cr3t", name == "TOKEN" },
		Rules: func() (diagnosis.Rules, error) {
			return diagnosis.NewRules([]hclspec.FailureRule{{
				Block: hclspec.Block{Address: hclspec.Address{Kind: "failure", Name: "flaky"}},
				Rule:  failure.Rule{Name: "flaky", Match: "flaky", Class: failure.Transient, Attempts: 5},
			}}, []string{"/nonexistent/model", "/"})
		},
	}
	env = &engine.Env{
		Work: dir, Scratch: dir, Log: log, Lease: &device.Lease{Ports: []int{4711}},
		Inputs: []engine.Input{{Entry: cache.Entry{Dir: input}}},
	}
	return c, env, log, shell.Place{Dir: filepath.Join(dir, "work"), Out: filepath.Join(dir, "out")}
}

var tool = hclspec.Address{Kind: "task", Name: "tool"}

func words(words ...string) hclspec.Command {
	var c hclspec.Command
	for _, w := range words {
		c.Argv = append(c.Argv, hclspec.Text{{Literal: w}})
	}
	return c
}

// A command on the host sees only its place. In a container it sees no path of the host.
func TestCommandsSeeTheirPlace(t *testing.T) {
	fake := executortest.NewFake().On("run", func(executor.Command) executortest.FakeRun {
		return executortest.FakeRun{Stdout: "with s3cr3t\n"}
	})
	c, env, log, host := world(t, fake)
	host.Tree, host.Secrets = tool, []string{"TOKEN"}
	host.Env = map[string]hclspec.Text{"TOOL": {{Ref: tool}}}
	inside := host
	inside.Tree, inside.Image = hclspec.Address{}, &shell.Image{ID: "sha256:1", Site: "/site",
		Env: []string{"PATH=/opt/bin"}}
	apart, build := inside, inside
	apart.InOut, build.InTree = true, true
	for name, tt := range map[string]struct {
		at   shell.Place
		dir  string
		argv string
		env  []string
	}{
		"on the host": {host, host.Dir, "run " + host.Out + " 4711 $TOKEN /home/me " + host.Dir,
			[]string{"PATH=/bin", "TOKEN=s3cr3t", "TOOL=" + env.Inputs[0].Dir, "SITE=" + host.Dir,
				"CUDA_VISIBLE_DEVICES="}},
		"in a container": {inside, "/benchgraph/work", "run /benchgraph/out 4711 $TOKEN /benchgraph/home /site",
			[]string{"PATH=/opt/bin", "TOKEN=s3cr3t", "TOOL=/benchgraph/in/0", "SITE=/site"}},
		"in a container, apart": {apart, "/benchgraph/out", "run /benchgraph/out 4711 $TOKEN /benchgraph/home /site",
			nil},
		"a build in a container": {build, "/benchgraph/work",
			"run /benchgraph/out 4711 $TOKEN /benchgraph/home /benchgraph/work", nil},
	} {
		t.Run(name, func(t *testing.T) {
			sh, err := c.Open(env, input.Refs{tool}, tt.at)
			if err != nil {
				t.Fatal(err)
			}
			if err := sh.Run(t.Context(), "run", words("run", "$OUT", "${PORT}", "$TOKEN", "$HOME", "$SITE"), 0,
				nil); err != nil {
				t.Fatal(err)
			}
			calls := fake.Calls()
			cmd := calls[len(calls)-1]
			if got := strings.Join(cmd.Argv, " "); got != tt.argv || cmd.Dir != tt.dir {
				t.Errorf("%s runs in %s", got, cmd.Dir)
			}
			for _, want := range tt.env {
				if !slices.Contains(cmd.Env, want) {
					t.Errorf("%s is not in %q", want, cmd.Env)
				}
			}
			if (cmd.Container != nil) != (tt.at.Image != nil) || !slices.Equal(cmd.Secrets, []string{"s3cr3t"}) {
				t.Errorf("%+v", cmd)
			}
			_, err = os.Stat(filepath.Join(tt.at.Dir, "a.txt"))
			if laid := err == nil; laid != (tt.at.Tree == tool) && tt.at.Image == nil {
				t.Errorf("the tree is laid out: %t", laid)
			}
		})
	}
	if text := log.String(); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "with ***") {
		t.Errorf("%q", log)
	}
	inside.Secrets = []string{"UNSET"}
	_, err := c.Open(env, input.Refs{tool}, inside)
	if f, ok := errors.AsType[*engine.Failure](err); !ok || f.Rule != "secret_missing" {
		t.Errorf("%v", err)
	}
}

// A failure is classified by a cure first, then by the first rule that matches, then by its last line.
func TestFailureIsClassifiedByItsOutput(t *testing.T) {
	says := func(text string, code int) executortest.FakeRun {
		return executortest.FakeRun{Stdout: text, Status: executor.Status{Code: code}}
	}
	for name, tt := range map[string]struct {
		run      executortest.FakeRun
		class    failure.Class
		rule     string
		message  string
		evidence string
		attempts int
	}{
		"a cure matches": {says("flaky\nno header\n", 1), failure.Fixable, "fix.header",
			"run: exit status 1", "no header", 0},
		"a rule matches": {says("first\nit is flaky here\nlast\n", 3), failure.Transient, "flaky",
			"run: exit status 3", "it is flaky here", 5},
		"a missing path": {says("cannot open /nonexistent/model/a.json: ENOENT\n", 1), failure.Infra,
			"path_missing", "run: exit status 1", "cannot open /nonexistent/model/a.json: ENOENT", 1},
		"an undeclared path": {says("cannot open /nonexistent/models: No such file or directory\n", 1),
			failure.Permanent, "file_missing", "run: exit status 1",
			"cannot open /nonexistent/models: No such file or directory", 0},
		"a path only named": {says("+ run /nonexistent/model\nlast\n", 1), failure.Permanent, "", "run: exit status 1",
			"last", 0},
		"no rule matches": {says("first\nlast\n", 1), failure.Permanent, "", "run: exit status 1", "last", 0},
		"a timeout": {executortest.FakeRun{Stdout: "working\n", Takes: time.Hour}, failure.Permanent,
			"out_of_time", "run: did not end within 1m0s", "benchgraph: ended after 1m0s (timeout)", 0},
		"a missing program": {executortest.FakeRun{Err: &executor.StartError{Err: errors.New("no such program")}},
			failure.Infra, "not_started", "", "", 1},
		"a signal": {executortest.FakeRun{Status: executor.Status{Code: -1, Signal: "SIGSEGV"}},
			failure.Permanent, "", "run: ended by SIGSEGV", "", 0},
		"a success": {says("no header, and flaky\n", 0), "", "", "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, env, _, at := world(t, executortest.NewFake().On("run", func(executor.Command) executortest.FakeRun {
					return tt.run
				}))
				sh, err := c.Open(env, nil, at)
				if err != nil {
					t.Fatal(err)
				}
				sh.Cures = func() []classify.Rule {
					return []classify.Rule{{Rule: failure.Rule{Name: "fix.header", Class: failure.Fixable},
						Pattern: regexp.MustCompile("no header")}}
				}
				err = sh.Run(t.Context(), "run", words("run"), time.Minute, nil)
				var f *engine.Failure
				if !errors.As(err, &f) {
					if tt.class != "" || err != nil {
						t.Fatal(err)
					}
					return
				}
				attempts := 0
				if f.Retry != nil {
					attempts = f.Retry.Attempts
				}
				if f.Class != tt.class || f.Rule != tt.rule || tt.message != "" && f.Message != tt.message ||
					f.Evidence != tt.evidence || attempts != tt.attempts {
					t.Errorf("%+v, tried %d times", f.Failure, attempts)
				}
			})
		})
	}
}

// A server is ready when its log says so; a server that says nothing, or ends, has failed.
func TestAServerIsReadyOrHasFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		run     executortest.FakeRun
		message string
	}{
		"it says so": {executortest.FakeRun{Stdout: "loading\nlistening on 4711\n", Serves: true}, ""},
		"it says nothing": {executortest.FakeRun{Stdout: "loading\n", Serves: true},
			"start: the server was not ready after 30s"},
		"it ends": {executortest.FakeRun{Stdout: "loading\n", Status: executor.Status{Code: 2},
			Takes: time.Second}, "start: the server died: exit status 2"},
		"it prints too much": {executortest.FakeRun{Stdout: strings.Repeat("x", 2<<20), Serves: true},
			"start: ended, because it printed more than 1MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := executortest.NewFake().On("serve", func(executor.Command) executortest.FakeRun {
					return tt.run
				}).
					On("client", func(executor.Command) executortest.FakeRun {
						return executortest.FakeRun{Stdout: "7 items/s\n"}
					})
				c, env, _, at := world(t, fake)
				at.Limits.Disk = 1 << 20
				sh, err := c.Open(env, nil, at)
				if err != nil {
					t.Fatal(err)
				}
				server, err := sh.Serve(t.Context(), &hclspec.Server{Command: words("serve"), Log: "^listening",
					Timeout: 30 * time.Second}, filepath.Join(at.Out, "log"))
				if tt.message != "" {
					if err == nil || !strings.HasPrefix(err.Error(), tt.message) ||
						strings.Contains(err.Error(), "\n") {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var stdout strings.Builder
				if err := server.Client(t.Context(), sh, words("client"), 0, &stdout); err != nil ||
					stdout.String() != "7 items/s\n" {
					t.Errorf("%q, %v", stdout.String(), err)
				}
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server that prints too much while its client runs is reported once.
func TestAServerThatPrintsTooMuchIsReportedOnce(t *testing.T) {
	flood := make(chan struct{})
	fake := executortest.NewFake().On("serve", func(c executor.Command) executortest.FakeRun {
		go func() {
			<-flood
			_, _ = io.WriteString(c.Stdout, strings.Repeat("x", 2<<20))
		}()
		return executortest.FakeRun{Stdout: "listening\n", Serves: true}
	}).On("client", func(executor.Command) executortest.FakeRun {
		close(flood)
		return executortest.FakeRun{Serves: true}
	})
	c, env, _, at := world(t, fake)
	at.Limits.Disk = 1 << 20
	sh, err := c.Open(env, nil, at)
	if err != nil {
		t.Fatal(err)
	}
	server, err := sh.Serve(t.Context(), &hclspec.Server{Command: words("serve"), Log: "^listening",
		Timeout: time.Minute}, filepath.Join(at.Out, "log"))
	if err != nil {
		t.Fatal(err)
	}
	err = server.Client(t.Context(), sh, words("client"), time.Minute, io.Discard)
	if end := server.Stop(); err == nil || !strings.HasPrefix(err.Error(), "run: ended, because it printed more") ||
		end != nil {
		t.Errorf("%v; at its stop: %v", err, end)
	}
}

// The proof of packages may run code of the candidate's, which may print without end.
func TestAProofIsBounded(t *testing.T) {
	fake := executortest.NewFake().On("python3", func(executor.Command) executortest.FakeRun {
		return executortest.FakeRun{Stdout: "{}" + strings.Repeat(" ", shell.MostSaid), Takes: time.Hour}
	})
	c, env, _, at := world(t, fake)
	at.Image = &shell.Image{ID: "sha256:1", Packages: []shell.Package{{Name: "app"}}}
	sh, err := c.Open(env, nil, at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sh.Prove(t.Context(), words("app"))
	if f, ok := errors.AsType[*engine.Failure](err); !ok || f.Rule != "artefact_mismatch" ||
		!strings.HasSuffix(f.Message, "found one of more than 16 MiB") {
		t.Errorf("%v", err)
	}
}

// What Python prints beside its answer goes to the log, which may find no room on the disk.
func TestAProofWithoutRoomForTheLogIsForWantOfRoom(t *testing.T) {
	fake := executortest.NewFake().On("python3", func(executor.Command) executortest.FakeRun {
		return executortest.FakeRun{Stderr: "warning\n", Takes: time.Second}
	})
	c, env, _, at := world(t, fake)
	at.Image = &shell.Image{ID: "sha256:1", Packages: []shell.Package{{Name: "app"}}}
	env.Log = full{}
	sh, err := c.Open(env, nil, at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = sh.Prove(t.Context(), words("app")); !failure.NoRoom(err) {
		t.Errorf("%v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
