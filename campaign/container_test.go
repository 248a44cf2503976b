package campaign_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

// box is an image that no other test makes.
const box = `
image "WORD" {
  from  = "BASE"
  fixes = [fix.mine]
}
fix "mine" {
  run    = ["echo WORD > /etc/word"]
  effect = "neutral"
}
`

// contained is a story in which image.WORD is a busybox.
func contained(t *testing.T, file string) *imaging {
	t.Helper()
	return picture(t, map[string]string{"benchmarks.hcl": box + file, "in.txt": "of the project\n"})
}

// mustDo applies and fails the test for every failure.
func (s *imaging) mustDo() {
	s.t.Helper()
	for _, f := range s.apply().Result.Failures {
		s.t.Errorf("%s: %+v", f.Address, f.Failure)
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

func TestATaskInAContainer(t *testing.T) {
	t.Parallel()
	s := contained(t, `
task "word" { command = "echo of the host > $OUT/word" }
task "look" {
  image   = image.WORD
  inputs  = ["*.txt"]
  data    = { "copy" = task.word }
  env     = { FROM = "file", INPUT = task.word, HOST = "HERE" }
  secrets = ["TOKEN"]
  cpus    = 1
  command = <<-END
    env | grep -v TOKEN > $OUT/env
    cat in.txt copy $${INPUT}/word > $OUT/files
    grep -E 'Cap(Eff|Bnd)|NoNewPrivs|Cpus_allowed_list' /proc/self/status > $OUT/status
    id -u > $OUT/id
    ls / > $OUT/root
    cat /proc/mounts > $OUT/mounts
    cat /proc/1/cmdline > $OUT/commands
    echo $TOKEN
    touch $HOME/writable
    if touch $INPUT/x; then echo the input is writable; exit 1; fi
    if [ -S /var/run/docker.sock ]; then echo there is a socket; exit 1; fi
    ls /sys/class/net > $OUT/net
    if wget -T 2 -O - http://$HOST/; then echo this machine is reached; exit 1; fi
  END
}
`)
	l, err := net.Listen("tcp", "0.0.0.0:0") // a service of this machine
	must(t, err)
	defer l.Close()
	text, err := os.ReadFile(filepath.Join(s.dir, "benchmarks.hcl"))
	must(t, err)
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	var own string
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			own = ip.IP.String()
		}
	}
	s.secrets["TOKEN"] = "a-very-secret-word"
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s.write("benchmarks.hcl", strings.Replace(string(text), "HERE", net.JoinHostPort(own, port), 1))
	s.mustDo()
	look := func(name string) string { return s.result("task.look", name) }
	if got := look("files"); got != "of the project\nof the host\nof the host\n" {
		t.Errorf("it read %q", got)
	}
	if got := look("id"); got != fmt.Sprintln(os.Getuid()) {
		t.Errorf("it ran as %q", got)
	}
	for name, want := range map[string]string{"status": "CapEff:\t0000000000000000", "net": "lo\n",
		"commands": "sh\x00-euc\x00"} {
		if got := look(name); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", name, got, want)
		}
	}
	if got := look("status"); !strings.Contains(got, "CapBnd:\t0000000000000000") ||
		!strings.Contains(got, "NoNewPrivs:\t1") || strings.ContainsAny(strings.Split(got, "Cpus_allowed_list:")[1],
		",-") {
		t.Errorf("it had %q", got)
	}
	env := look("env")
	for _, want := range []string{"OUT=/benchgraph/out", "SRC=/benchgraph/work", "HOME=/benchgraph/home", "FROM=file",
		"INPUT=/benchgraph/in/", "PATH=/bin"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, name := range []string{"env", "commands"} {
		if strings.Contains(look(name), s.dir) {
			t.Errorf("%s holds %s of the host", name, s.dir)
		}
	}
	if strings.Contains(look("commands"), "a-very-secret-word") {
		t.Error("a secret is in a command line")
	}
	for _, mount := range strings.Split(look("mounts"), "\n") {
		if f := strings.Fields(mount); len(f) > 3 && strings.HasPrefix(f[1], "/benchgraph/in/") &&
			!strings.HasPrefix(f[3], "ro") {
			t.Errorf("an input is mounted to be written to: %s", mount)
		}
	}
}

// beside is a benchmark whose busybox server and client run in containers.
func beside(server, ready, command, more string) string {
	return fmt.Sprintf(`
task "page" { command = "mkdir $OUT/d; echo 'work done: 1000 items/s' > $OUT/d/speed; echo of the server > $OUT/d/page" }
benchmark "speed" {
  image = image.WORD
  data  = { "pages/" = task.page }
  server {
    command = %s
    ready {
      %s
      timeout = "20s"
    }
  }
  command = %s
  %s
  design {
    samples = 1
    repeat  = 2
  }
  metrics {
    metric "items" {
      match = "work done: ([0-9.]+) items/s"
      unit  = "items/s"
    }
  }
}
failure "patience" {
  match = "benchgraph: .*timeout"
  class = "permanent"
}
`, server, ready, command, more)
}

const (
	httpd = `"echo up; exec httpd -f -p 127.0.0.1:$PORT -h pages/d"`
	get   = `"printf 'GET /speed HTTP/1.0\\r\\n\\r\\n' | nc -w 2 127.0.0.1 $PORT"`
)

func TestServersInContainers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, server, ready, command, more string
		rule, stage, tells                 string // of the baseline's failure; empty: there is none
	}{
		{name: "found ready by its page, though it listens to itself only", server: httpd, ready: `http = "/page"`,
			command: get},
		{name: "found ready by its port", server: httpd, ready: `tcp = true`, command: get},
		{name: "found ready by its log", server: httpd, ready: `log = "^up$"`, command: `"sleep 1; ` + get[1:]},
		{name: "dies at once", server: `"echo no model >&2; exit 3"`, ready: `http = "/page"`, command: get,
			stage: "start", tells: "the server died: exit status 3: no model"},
		{name: "dies in the middle",
			server: `"httpd -f -p 127.0.0.1:$PORT -h pages/d & sleep 4; echo out of steam; exit 1"`,
			ready:  `tcp = true`, command: `"sleep 600"`,
			stage: "run", tells: "the server died: exit status 1: out of steam"},
		{name: "crashes, and its client counts that and goes on",
			server: `"nc -l -p $PORT >/dev/null; echo out of steam; exit 3"`, ready: `tcp = true`,
			command: `"echo x | nc 127.0.0.1 $PORT || true; sleep 2; echo 'work done: 5 items/s'"`, stage: "run",
			tells: "the server died: exit status 3: out of steam"},
		{name: "is never ready", server: `"echo loading; sleep 600"`, ready: "http = \"/page\"", command: get,
			rule: "patience", stage: "start", tells: "not ready after 20s"},
		{name: "ignores polite signals",
			server: `"trap '' TERM; httpd -f -p 127.0.0.1:$PORT -h pages/d & while :; do sleep 1; done"`,
			ready:  `tcp = true`, command: get},
		{name: "uses too much memory", server: `"echo loading; tail /dev/zero"`, ready: `tcp = true`, command: get,
			more: `memory = "64MiB"`,
			rule: "oom_killed", stage: "start", tells: "more than its 64MiB of memory"},
		{name: "has a client that uses too much memory", server: httpd, ready: `tcp = true`,
			command: `"echo asking; tail /dev/zero"`, more: `memory = "64MiB"`,
			rule: "oom_killed", stage: "run", tells: "raise memory in the block"},
		{name: "has a client that takes too long", server: httpd, ready: `tcp = true`, command: `"sleep 600"`,
			more: `timeout = "1s"`, rule: "patience", stage: "run"},
		{name: "cannot be found in the image", server: `["no-such-program"]`, ready: `tcp = true`, command: get,
			rule: "not_started", stage: "start", tells: "no-such-program"},
		{name: "has a canary in its client's image", server: httpd, ready: `tcp = true`, command: get,
			more: "canary {\ncommand = \"grep -q WORD /etc/word; test ! -e pages; echo moved 5 GB/s\"\nmatch = " +
				"\"moved ([0-9]+)\"\n}"},
		{name: "is apart from its client, which has an empty $OUT twice",
			server: `"touch $OUT/own; chmod 777 $OUT; ls / /benchgraph; ` + httpd[1:], ready: `tcp = true`,
			command: `"test ! -e $OUT/own; test ! -e $OUT/client; echo mine > $OUT/client; ` + get[1:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := contained(t, strings.Replace(beside(tt.server, tt.ready, tt.command, tt.more), "20s",
				map[bool]string{true: "2s", false: "20s"}[tt.rule == "patience" && tt.stage == "start"], 1))
			s.apply()
			var rec struct {
				Members map[string]struct {
					Failure   *failure.Failure
					Artefacts []struct{ Node, Image string }
				}
			}
			for _, e := range s.events {
				if e.Type == engine.NodeFailed && strings.HasPrefix(e.Address, "trial.") {
					t.Errorf("%s: %+v", e.Address, e.Failure)
				}
			}
			must(t, json.Unmarshal([]byte(s.result(`trial.speed["#1"]`, "record.json")), &rec))
			for name, m := range rec.Members {
				switch f := m.Failure; {
				case tt.stage == "" && f != nil:
					t.Fatalf("%s: %+v", name, *f)
				case tt.stage == "" && !slices.ContainsFunc(m.Artefacts, func(a struct{ Node, Image string }) bool {
					return a.Node == "image."+s.word && strings.HasPrefix(a.Image, "sha256:")
				}):
					t.Errorf("%s: which image ran is not recorded: %+v", name, m.Artefacts)
				case tt.stage != "":
					if f == nil || f.Stage != tt.stage || tt.rule != "" && f.Rule != tt.rule ||
						f.Class != failure.Permanent {
						t.Fatalf("%s: %+v", name, f)
					}
					if all := f.Message + ": " + f.Evidence + "; " + f.Remedy; !strings.Contains(all,
						strings.Replace(tt.tells, "20s", "2s", 1)) {
						t.Errorf("%q does not tell %q", all, tt.tells)
					}
				}
			}
		})
	}
}

// python is a base image whose labels say that benchgraph made a Python that finds its packages in /site. It plays that
// Python, and prints what the test needs.
func (s *imaging) python() string {
	s.t.Helper()
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	text := `#!/bin/sh
if [ "$4" = /benchgraph/work ]; then problem='"pkg is found in /benchgraph/work/pkg"'; fi
echo '{"modules": {"pkg": "/site/pkg.py"}, "problems": ['"$problem"']}'
`
	must(s.t, w.WriteHeader(&tar.Header{Name: "bin/python3", Mode: 0o755, Size: int64(len(text))}))
	_, err := w.Write([]byte(text))
	must(s.t, err)
	must(s.t, w.Close())
	name, labels := s.word+"-base", map[string]string{container.LabelKey: s.word, container.LabelNode: "image." +
		s.word, "io.benchgraph.site": "/site",
		"io.benchgraph.packages": `[{"name": "pkg", "version": "1", "info": "/site/pkg-1.dist-info", "record": "00"}]`}
	_, err = s.engine.Create(s.t.Context(), name, &api.Config{Image: s.base, Cmd: []string{"true"}}, &api.HostConfig{})
	must(s.t, err)
	must(s.t, s.engine.CopyTo(s.t.Context(), name, &files))
	id, err := s.engine.Commit(s.t.Context(), name, api.CommitOptions{Config: &api.Config{Labels: labels,
		Env: []string{"PATH=/bin"}}})
	must(s.t, err)
	must(s.t, s.engine.Remove(s.t.Context(), name))
	made, err := s.engine.Image(s.t.Context(), id) // Podman's answer has the ID in another form
	must(s.t, err)
	return made.ID
}

func TestWhatRunsIsProven(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ server, found string }{
		"what the image has": {server: httpd},
		"a shadowed package": {server: `"if test $PORT = 0; then python3 -m pkg; fi; ` + httpd[1:],
			found: "pkg is found in /benchgraph/work/pkg"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := contained(t, "")
			s.base = s.python()
			s.write("benchmarks.hcl", box+beside(tt.server, "tcp = true", get, ""))
			s.apply()
			const block = `trial.speed["#1"]`
			if tt.found != "" { // nobody was measured, so that nobody has failed
				if said := s.log(block); !strings.Contains(said, "the running artefact is not the image's") ||
					!strings.Contains(said, tt.found) {
					t.Errorf("%s\nwant %q", said, tt.found)
				}
				return
			}
			if f := s.failureOf("run"); f != nil {
				t.Errorf("%+v", f)
			}
			if rec := s.result(block, "record.json"); !strings.Contains(rec, "/site/pkg.py") {
				t.Errorf("the record lacks what was proven: %s", rec)
			}
		})
	}
}

// failureOf returns the failure of a member of the first block.
func (s *imaging) failureOf(member string) *failure.Failure {
	s.t.Helper()
	var rec struct {
		Members map[string]struct{ Failure *failure.Failure }
	}
	must(s.t, json.Unmarshal([]byte(s.result(`trial.speed["#1"]`, "record.json")), &rec))
	return rec.Members[member].Failure
}

func TestTheEngineGoesAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	d := containertest.NewDaemon(t, containertest.DaemonOptions{})
	s := &imaging{story: tell(t, nil), word: "middle"}
	s.engine = d.Engine()
	s.base = containertest.Busybox(t, s.engine)
	s.write("benchmarks.hcl", box+`
task "long" {
  image   = image.WORD
  command = "sleep 5; echo done > $OUT/it"
}
`)
	s.seen = func(e engine.Event) {
		if e.Type == engine.NodeStart && e.Address == "task.long" && e.Attempt == 1 {
			go func() {
				time.Sleep(2 * time.Second)
				d.Kill()
			}()
		}
	}
	failures := s.apply().Result.Failures
	if len(failures) != 1 || !failures[0].Failure.Class.Retried() || failures[0].Failure.Remedy == "" {
		t.Errorf("an engine that is gone is told as %+v", failures)
	}
	s.seen = nil
	d.Start()
	s.mustDo()
	if got := s.result("task.long", "it"); got != "done\n" {
		t.Errorf("the next apply made %q", got)
	}
	if n, err := docker.Reap(t.Context(), s.engine); n != 0 || err != nil {
		t.Errorf("%d containers are left, %v", n, err)
	}
}

// A socket may exist although its engine does not run. Commands then wait until the engine answers, and no attempt is
// lost. An engine that refuses only a ping does run.
func TestAnEngineThatDoesNotAnswerIsWaitedFor(t *testing.T) {
	t.Parallel()
	closes := func(w http.ResponseWriter) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
	}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter)
		ping   bool   // to nothing but a ping
		says   string // empty: nobody waits
	}{
		"closes connections": {closes, false, "it closes connections without an answer"},
		"500 to all":         {func(w http.ResponseWriter) { http.Error(w, "no", 500) }, false, "500 Internal"},
		"502 to all": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, false,
			"502 Bad Gateway"},
		"503 to all":   {func(w http.ResponseWriter) { w.WriteHeader(503) }, false, "503 Service Unavailable"},
		"403 to pings": {func(w http.ResponseWriter) { w.WriteHeader(403) }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := picture(t, map[string]string{"benchmarks.hcl": box + `
task "inside" {
  image   = image.WORD
  command = "echo done > $OUT/it"
}
`})
			var away, passed atomic.Bool
			proxy := between(t, s.engine, func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
				switch ping := strings.HasSuffix(r.URL.Path, "/_ping"); {
				case away.Load() && (ping || !tt.ping):
					tt.answer(w)
				default:
					passed.Store(passed.Load() || away.Load())
					engine.ServeHTTP(w, r)
				}
			})
			real := s.engine
			defer func() { s.engine = real }()
			told := ""
			s.engine = container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": proxy.Host()},
				State: real.State(), Wait: time.Minute, Away: func(err error) {
					told += err.Error()
					away.Store(false)
				}})
			attempts := 0
			s.seen = func(e engine.Event) {
				switch {
				case e.Type == engine.NodeDone && strings.HasPrefix(e.Address, "image."):
					away.Store(true)
				case e.Type == engine.NodeStart && e.Address == "task.inside":
					attempts++
				}
			}
			s.mustDo()
			if got := s.result("task.inside", "it"); got != "done\n" || attempts != 1 {
				t.Errorf("%q in %d attempts", got, attempts)
			}
			if !strings.Contains(told, tt.says) || (told == "") != (tt.says == "") || passed.Load() != tt.ping {
				t.Errorf("told %q, want %q; something passed meanwhile: %v", told, tt.says, passed.Load())
			}
		})
	}
}

func TestAProbeRunsWhereItsCandidateIsMeasured(t *testing.T) {
	t.Parallel()
	s := contained(t, `
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
known_issue "word" {
  for_each = candidates
  when     = each.variant.name == "one"
  probe    = "test -z \"$(ls)\" && test ! -e /etc/word"
  reason   = "it has the word"
}
benchmark "b" {
  for_each = candidates
  image    = image.WORD
  command  = "echo m 5"
  design { samples = 1 }
  metrics {
    metric "m" { match = "m ([0-9]+)" }
  }
}
compare "all" { of = [benchmark.b] }
`)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Skipped})
}
