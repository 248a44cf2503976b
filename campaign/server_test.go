package campaign_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/stats"
)

// listener is a server that answers every connection with a speed, in as few parts as possible.
const listener = `
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
print("engine: listening at last", flush=True)
while True:
    c, _ = s.accept()
    try:
        if c.recv(3) == b"die":
            print("engine: out of steam", flush=True)
            sys.exit(3)
        c.sendall(b"work done: %d items/s\n" % (1000 + time.time_ns() % 3))
        c.close()
    except ConnectionError:
        pass
`

// asker asks the server on its port.
const asker = `
import socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
c.sendall(sys.argv[2].encode())
print(c.recv(100).decode())
import time
if sys.argv[2] == "die":
    time.sleep(600)
`

// served is a benchmark of two variants against the listener.
func served(ready, command, more string) string {
	return fmt.Sprintf(`
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
task "tools" {
  inputs  = ["listener.py", "asker.py"]
  command = "cp listener.py asker.py $OUT/"
}
benchmark "speed" {
  for_each = candidates
  data     = { "tools/" = task.tools }
  %s
  server {
    command = ["python3", "tools/listener.py", "$PORT"]
    env     = { ONLY = "server" }
    ready {
      %s
    }
  }
  command = %s
  design {
    samples = 2
    warmup  = 1
    repeat  = 2
  }
  metrics {
    metric "items" {
      match = "work done: ([0-9.]+) items/s"
      unit  = "items/s"
    }
  }
}
compare "all" { of = [benchmark.speed] }
`, more, ready, command)
}

func TestServersAreReadyAndDie(t *testing.T) {
	t.Parallel()
	ask := `["python3", "tools/asker.py", "$PORT", "ask"]`
	tests := []struct {
		name, ready, command, more string
		want                       stats.Outcome
		evidence                   string
	}{
		{name: "ready when its port is open", ready: "tcp = true", command: ask, want: stats.Inconclusive},
		{name: "ready when its log says so", ready: `log = "listening at la.t"`, command: ask,
			want: stats.Inconclusive},
		{name: "ready when its log says so, with a command for the shell", ready: `log = "^engine: listening"`,
			command: `"test -z \"$${ONLY:-}\" && python3 tools/asker.py $PORT ask"`, want: stats.Inconclusive},
		{name: "never ready", ready: "log = \"no such line\"\n timeout = \"0.3s\"", command: ask,
			want: stats.NoBaseline, evidence: "not ready after 300ms"},
		{name: "it dies in the middle of a run", ready: "tcp = true",
			command: strings.Replace(ask, `"ask"`, `"die"`, 1), want: stats.NoBaseline, evidence: "out of steam"},
		{name: "the command takes too long", ready: "tcp = true", command: `"sleep 600"`, more: `timeout = "0.3s"`,
			want: stats.NoBaseline, evidence: "timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tell(t, map[string]string{"listener.py": listener, "asker.py": asker,
				"benchmarks.hcl": served(tt.ready, tt.command, tt.more) + `
failure "patience" {
  match = "benchgraph: .*timeout"
  class = "permanent"
}
`})
			s.apply()
			s.wantOutcomes(map[string]stats.Outcome{"c/one": tt.want})
			warm, second, seen := 0, 0, tt.evidence == ""
			for _, e := range s.events {
				if e.Type == engine.NodeProgress && e.Phase == "warm-up 1" {
					warm++
				}
				if e.Type == engine.NodeProgress && e.Phase == "pass 2" {
					second++
				}
				if e.Failure != nil && strings.Contains(e.Failure.Message+e.Failure.Evidence, tt.evidence) {
					seen = true
				}
			}
			if tt.want == stats.Inconclusive && (warm != 4 || second != 4) {
				t.Errorf("%d warm-ups and %d second passes in four lifecycles", warm, second)
			}
			if !seen {
				t.Errorf("nothing tells of %q", tt.evidence)
			}
		})
	}
}

func TestAFailureThatIsCalledFixableAndHasNoFixIsOnesOwn(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"benchmarks.hcl": simple(strings.Replace(measured, "samples = 7", "samples = 4", 1)+`
failure "curable" {
  match = "could be cured"
  class = "fixable"
}
`, claims(1000), "echo this could be cured; exit 1", claims(900))})
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/v1": stats.Failed, "c/v2": stats.Loss})
}

func TestAFixWhoseFileIsMissingIsItsCandidatesFailure(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"benchmarks.hcl": simple(strings.Replace(measured, "samples = 7", "samples = 4\n",
		1)+`
fix "file" {
  when   = each.variant.name == "v1"
  effect = "neutral"
  file {
    from = "not/there"
    to   = "x"
  }
}
`, claims(1000), claims(1100), claims(900))})
	s.apply()
	got := s.outcomes()
	if got["c/v2"] != stats.Loss || got["c/v1"] == stats.Infra || got["c/v1"] == stats.Win {
		t.Errorf("outcomes are %v", got)
	}
}

func TestDataDoesNotReplaceWhatTheClientHas(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"x": "1"})
	s.commit(map[string]string{"prog.sh": claims(1000), "build.sh": buildScript, "prog": "of the client"})
	s.commit(map[string]string{"prog.sh": claims(1100)})
	s.write("benchmarks.hcl", strings.Replace(strings.Replace(fmt.Sprintf(threeWay, "HEAD"), `command  = "./prog"`,
		"command  = \"./prog\"\n  client = each.commit.rev", 1), "sh build.sh", "rm prog; sh build.sh", 1))
	applied := s.apply()
	if !slices.ContainsFunc(applied.Result.Failures, func(f engine.Failed) bool {
		return f.Failure.Rule == "data_conflict"
	}) {
		t.Errorf("%+v", applied.Result)
	}
	s.wantOutcomes(map[string]stats.Outcome{"c/human": stats.NoBaseline, "c/agent": stats.NoPatch})
}

func TestDownloadsMatchTheirDeclarations(t *testing.T) {
	t.Parallel()
	content := "first"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, content)
	}))
	defer server.Close()
	file := fmt.Sprintf(`
fetch "right" {
  url    = "%[1]s/a.txt"
  sha256 = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
}
fetch "wrong" {
  url    = "%[1]s/b.txt"
  sha256 = "b7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
}
fetch "open" { url = "%[1]s/c.txt" }
task "use" {
  data    = { "x.txt" = fetch.open }
  command = "cp x.txt $OUT/ && grep -q first ${fetch.right}"
}
`, server.URL)
	s := tell(t, map[string]string{"benchmarks.hcl": file})
	applied := s.apply()
	if r := applied.Result; r.Done != 3 || r.Failed != 1 || r.Failures[0].Failure.Rule != "download_mismatch" {
		t.Errorf("%+v", r)
	}
	const digest = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
	if pin := s.lock.Fetches[server.URL+"/c.txt"]; pin.SHA256 != digest {
		t.Errorf("the lock pins %+v", s.lock.Fetches)
	}
	if s.apply(); slices.Contains(s.ran(), "fetch.open") {
		t.Errorf("the second run ran %q", s.ran())
	}
	// Another machine, with the lock and an empty store, must get the same bytes.
	content = "another"
	other := tell(t, map[string]string{"benchmarks.hcl": file})
	other.lock = s.lock
	for _, f := range other.apply().Result.Failures {
		if f.Failure.Rule != "download_mismatch" {
			t.Errorf("%+v", f)
		}
	}
	if slices.Contains(other.ran(), "task.use") {
		t.Error("other bytes than the lock's were used")
	}
}

func TestAPatchOnTopOfAPrebuiltWheel(t *testing.T) {
	t.Parallel()
	s := tell(t, nil)
	parent := s.commit(map[string]string{"pkg/a.py": "one\n", "pkg/core.c": "int x;\n"})
	s.commit(map[string]string{"pkg/a.py": "two\n"})
	wheel := filepath.Join(s.dir, "served")
	must(t, makeWheel(wheel))
	server := httptest.NewServer(http.FileServer(http.Dir(wheel)))
	defer server.Close()
	s.git("checkout", "-q", "--detach", parent)
	s.write("repo/pkg/a.py", "patched\n")
	python := s.git("diff") + "\n"
	s.git("checkout", "-q", "--force", parent)
	s.write("repo/pkg/core.c", "int patched;\n")
	native := s.git("diff") + "\n"
	s.git("checkout", "-q", "--force", "main")
	s.write("patches/python.diff", python)
	s.write("patches/native.diff", native)
	s.write("benchmarks.hcl", unguarded+fmt.Sprintf(`
repo "r" { path = "repo" }
commit "c" { rev = "main" }
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "python" {
  rev   = each.commit.parent
  patch = "patches/python.diff"
}
variant "native" {
  rev   = each.commit.parent
  patch = "patches/native.diff"
}
wheel "pkg" {
  for_each = candidates
  source   = each.source
  prebuilt = ["%s/pkg-1-py3-none-any.whl"]
  overlay  = ["pkg/**/*.py"]
  build { command = "%s" }
  outputs = ["*.whl"]
}
`, server.URL, "cp "+wheel+"/*.whl $OUT/"))
	applied := s.apply()
	if applied.Result.Failed > 0 {
		t.Errorf("%+v", applied.Result)
	}
	served := &engine.Origin{Serves: server.URL + "/pkg-1-py3-none-any.whl", Passed: []string{}}
	patched := &engine.Origin{Reason: "its patch changes files of a prebuilt wheel", Passed: []string{served.Serves}}
	for key, want := range map[string]*engine.Origin{"c/base": served, "c/python": served, "c/native": patched} {
		for _, kind := range []string{"build", "wheel"} {
			step, ok := applied.Plan.Step(fmt.Sprintf("%s.pkg[%q]", kind, key))
			if !ok || !reflect.DeepEqual(step.Node.Origin, want) {
				t.Errorf("the %s of %s is %+v instead of %+v", kind, key, step.Node.Origin, want)
			}
		}
	}
	// Only the patch of compiled code needs a build; the other one takes the prebuilt wheel with its own files laid
	// over it.
	var starts []string
	for _, e := range s.events {
		if e.Type == engine.NodeProgress && e.Phase == "build" {
			starts = append(starts, e.Address)
		}
	}
	if !slices.Equal(starts, []string{`build.pkg["c/native"]`}) {
		t.Errorf("built: %q", starts)
	}
}

// makeWheel writes a wheel of the package into a directory.
func makeWheel(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "pkg-1-py3-none-any.whl"),
		wheelOf("1", map[string]string{"pkg/a.py": "one\n", "pkg/core.so": "int x;\n"}), 0o644)
}
