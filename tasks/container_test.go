package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/docker/dockertest"
	"github.com/benchgraph/benchgraph/tasks"
)

// contained is a story on this machine's container engine, in which image.box is a busybox.
func contained(t *testing.T, file string) *story {
	t.Helper()
	s := tell(t, map[string]string{"benchmarks.hcl": "image \"box\" { from = \"example.org/box:1\" }\n" + file, "in.txt": "of the project\n"})
	s.engine = dockertest.Engine(t)
	s.image("image.box", map[string]any{"id": dockertest.Busybox(t, s.engine), "env": []string{"PATH=/bin"}})
	return s
}

// image puts what an image node leaves into the store.
func (s *story) image(address string, record map[string]any) {
	s.t.Helper()
	diags := s.open(func(ctx context.Context, p *tasks.Project) {
		plan, err := p.Plan(ctx, tasks.PlanOptions{})
		must(s.t, err)
		step, ok := plan.Step(address)
		if !ok {
			s.t.Fatalf("there is no %s", address)
		}
		text, err := json.Marshal(record)
		must(s.t, err)
		dir, err := p.Store.Scratch()
		must(s.t, err)
		must(s.t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
		must(s.t, os.WriteFile(filepath.Join(dir, "out", "image.json"), text, 0o644))
		log, err := os.CreateTemp(s.t.TempDir(), "log")
		must(s.t, err)
		defer log.Close()
		_, err = p.Store.Put(ctx, cache.Draft{Meta: cache.Meta{Key: step.Key, Address: address, Text: step.Text}, Dir: dir, Log: log})
		must(s.t, err)
	})
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
}

// result is the content of a file in what a node made.
func (s *story) result(address, name string) string {
	s.t.Helper()
	text := ""
	s.open(func(ctx context.Context, p *tasks.Project) {
		plan, err := p.Plan(ctx, tasks.PlanOptions{})
		must(s.t, err)
		step, ok := plan.Step(address)
		if !ok {
			s.t.Fatalf("there is no %s", address)
		}
		meta, ok := step.Stored()
		if !ok {
			s.t.Fatalf("%s: %s", address, step.Reason)
		}
		entry, err := p.Store.Get(ctx, meta.Key, false)
		must(s.t, err)
		got, err := os.ReadFile(filepath.Join(entry.Dir, name))
		must(s.t, err)
		text = string(got)
	})
	return text
}

// mustDo applies and fails the test for every failure.
func (s *story) mustDo() {
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
  image   = image.box
  inputs  = ["*.txt"]
  data    = { "copy" = task.word }
  env     = { FROM = "file", WORD = task.word, HOST = "HERE" }
  secrets = ["TOKEN"]
  cpus    = 1
  command = <<-END
    env | grep -v TOKEN > $OUT/env
    cat in.txt copy $${WORD}/word > $OUT/files
    grep -E 'Cap(Eff|Bnd)|NoNewPrivs|Cpus_allowed_list' /proc/self/status > $OUT/status
    id -u > $OUT/id
    ls / > $OUT/root
    cat /proc/mounts > $OUT/mounts
    cat /proc/1/cmdline > $OUT/commands
    echo $TOKEN
    touch $HOME/writable
    if touch $WORD/x; then echo the input is writable; exit 1; fi
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
	for name, want := range map[string]string{"status": "CapEff:\t0000000000000000", "net": "lo\n", "commands": "sh\x00-euc\x00"} {
		if got := look(name); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", name, got, want)
		}
	}
	if got := look("status"); !strings.Contains(got, "CapBnd:\t0000000000000000") || !strings.Contains(got, "NoNewPrivs:\t1") || strings.ContainsAny(strings.Split(got, "Cpus_allowed_list:")[1], ",-") {
		t.Errorf("it had %q", got)
	}
	env := look("env")
	for _, want := range []string{"OUT=/benchgraph/out", "SRC=/benchgraph/work", "HOME=/benchgraph/home", "FROM=file", "WORD=/benchgraph/in/", "PATH=/bin"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, foreign := range []string{s.dir, "BENCHGRAPH_PROC"} {
		for _, name := range []string{"env", "commands"} {
			if strings.Contains(look(name), foreign) {
				t.Errorf("%s holds %s of the host", name, foreign)
			}
		}
	}
	if strings.Contains(look("commands"), "a-very-secret-word") {
		t.Error("a secret is in a command line")
	}
	for _, mount := range strings.Split(look("mounts"), "\n") {
		if f := strings.Fields(mount); len(f) > 3 && strings.HasPrefix(f[1], "/benchgraph/in/") && !strings.HasPrefix(f[3], "ro") {
			t.Errorf("an input is mounted to be written to: %s", mount)
		}
	}
}

// beside is a benchmark whose busybox server and client run in containers.
func beside(server, ready, command, more string) string {
	return fmt.Sprintf(`
task "page" { command = "mkdir $OUT/d; echo 'work done: 1000 items/s' > $OUT/d/speed; echo of the server > $OUT/d/page" }
benchmark "speed" {
  image = image.box
  data  = { "pages" = task.page }
  server {
    command = %s
    ready {
      %s
      timeout = "20s"
    }
  }
  command = %s
  %s
  design { samples = 1 }
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
		{name: "found ready by its page, though it listens to itself only", server: httpd, ready: `http = "/page"`, command: get},
		{name: "found ready by its port", server: httpd, ready: `tcp = true`, command: get},
		{name: "found ready by its log", server: httpd, ready: `log = "^up$"`, command: `"sleep 1; ` + get[1:]},
		{name: "dies at once", server: `"echo no model >&2; exit 3"`, ready: `http = "/page"`, command: get, stage: "start", tells: "the server died: exit status 3: no model"},
		{name: "dies in the middle", server: `"httpd -f -p 127.0.0.1:$PORT -h pages/d & sleep 4; echo out of steam; exit 1"`, ready: `tcp = true`, command: `"sleep 600"`,
			stage: "run", tells: "the server died: exit status 1: out of steam"},
		{name: "is never ready", server: `"echo loading; sleep 600"`, ready: "http = \"/page\"", command: get, rule: "patience", stage: "start", tells: "not ready after 20s"},
		{name: "ignores polite signals", server: `"trap '' TERM; httpd -f -p 127.0.0.1:$PORT -h pages/d & while :; do sleep 1; done"`, ready: `tcp = true`, command: get},
		{name: "uses too much memory", server: `"echo loading; tail /dev/zero"`, ready: `tcp = true`, command: get, more: `memory = "64MiB"`,
			rule: "oom_killed", stage: "start", tells: "more than its 64MiB of memory"},
		{name: "has a client that uses too much memory", server: httpd, ready: `tcp = true`, command: `"echo asking; tail /dev/zero"`, more: `memory = "64MiB"`,
			rule: "oom_killed", stage: "run", tells: "raise memory in the block"},
		{name: "has a client that takes too long", server: httpd, ready: `tcp = true`, command: `"sleep 600"`, more: `timeout = "1s"`, rule: "patience", stage: "run"},
		{name: "cannot be found in the image", server: `["no-such-program"]`, ready: `tcp = true`, command: get, rule: "not_started", stage: "start", tells: "no-such-program"},
		{name: "is apart from its client", server: `"touch $OUT/own; chmod 777 $OUT; ls / /benchgraph; ` + httpd[1:], ready: `tcp = true`,
			command: `"test ! -e $OUT/own; echo mine > $OUT/client; ` + get[1:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := contained(t, strings.Replace(beside(tt.server, tt.ready, tt.command, tt.more), "20s", map[bool]string{true: "2s", false: "20s"}[tt.rule == "patience" && tt.stage == "start"], 1))
			s.apply()
			var rec struct {
				Members map[string]struct {
					Failure   *cache.Failure
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
					return a.Node == "image.box" && strings.HasPrefix(a.Image, "sha256:")
				}):
					t.Errorf("%s: which image ran is not recorded: %+v", name, m.Artefacts)
				case tt.stage != "":
					if f == nil || f.Stage != tt.stage || tt.rule != "" && f.Rule != tt.rule || f.Class != cache.Permanent {
						t.Fatalf("%s: %+v", name, f)
					}
					if all := f.Message + ": " + f.Evidence + "; " + f.Remedy; !strings.Contains(all, strings.Replace(tt.tells, "20s", "2s", 1)) {
						t.Errorf("%q does not tell %q", all, tt.tells)
					}
				}
			}
		})
	}
}
