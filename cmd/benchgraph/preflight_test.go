//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The findings of a preflight are compared with the real outcomes of 96 commits, most of which were measured in vain.
// The facts are in testdata/preflight/facts.json: the commands, the options that the scripts of each parent know, the
// architectures of its engine, the prebuilt wheels, and the end of each run. BENCHGRAPH_HISTORY names a clone of the
// real history, which is then used instead of the history that is made here from the facts.

type pfFacts struct {
	Options       []string
	Parsers       [][]int // of options
	Architectures []string
	Registries    [][]int // of architectures
	Commits       []pfCommit
}

type pfCommit struct {
	Commit, Rev, Title, Command, Model, Version, Status string
	Changed                                             []string
	GPUs                                                int
	Wheel                                               bool // the parent has a prebuilt one
	Cause, Check                                        string
	Scripts                                             map[string]pfScript
	Engine, Server                                      *int // parsers
	Registry                                            string
	Architectures                                       int
}

type pfScript struct {
	Options          int
	Engine, Flexible bool
}

func TestPreflightGroundTruth(t *testing.T) {
	facts := readFacts(t)
	world := newWorld(t, "")
	repo, revs := os.Getenv("BENCHGRAPH_HISTORY"), func(c pfCommit) string { return c.Rev }
	if repo == "" {
		repo, revs = world.path("repo"), func(c pfCommit) string { return "h-" + c.Commit }
		facts.makeHistory(t, repo)
	}
	lost := map[string]bool{} // parents without a wheel
	for _, c := range facts.Commits {
		if !c.Wheel {
			lost[gitIn(t, repo, "rev-parse", revs(c)+"^")] = true
		}
	}
	wheels := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost[path.Base(path.Dir(r.URL.Path))] {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer wheels.Close()
	world.write("benchmarks.hcl", facts.campaign(repo, wheels.URL, revs))

	begun := time.Now()
	var plan struct {
		Nodes     []struct{ Address, Action, Reason string }
		Preflight []struct{ Check, Commit, Candidate, Status, Evidence, Remedy, Place string }
	}
	out := world.run("plan", "-json")
	if out.code != 0 {
		t.Fatalf("plan: %d\n%s", out.code, out.stderr)
	}
	if err := json.Unmarshal([]byte(out.stdout), &plan); err != nil {
		t.Fatal(err)
	}
	t.Logf("first plan: %v", time.Since(begun).Round(time.Millisecond))

	foretold, of := 0, 0
	for _, c := range facts.Commits {
		said, fails := false, ""
		for _, f := range plan.Preflight {
			if f.Commit != c.Commit {
				continue
			}
			said = said || f.Check == c.Check && (f.Status == "fail" || f.Status == "warn")
			if f.Status == "fail" {
				fails = f.Check + ": " + f.Evidence
			}
			if f.Status != "ok" && (f.Evidence == "" || f.Place == "") {
				t.Errorf("%s: a finding without evidence or place: %+v", c.Commit, f)
			}
		}
		if c.Check != "" {
			if of++; said {
				foretold++
			} else {
				t.Logf("%s: not foretold: %s (%s)", c.Commit, c.Check, c.Cause)
			}
		}
		if c.Status == "success" && fails != "" {
			t.Errorf("%s was measured, and is refused: %s", c.Commit, fails)
		}
	}
	t.Logf("%d of %d failures foretold", foretold, of)
	if of != 40 || foretold < 38 {
		t.Errorf("%d of %d failures foretold, want at least 38 of 40", foretold, of)
	}
	// Refused candidates do not run, and have a reason; the others go on.
	refused, built := 0, 0
	for _, n := range plan.Nodes {
		if strings.HasPrefix(n.Reason, "preflight (") {
			refused++
			if n.Action == "run" {
				t.Errorf("%s is refused and run", n.Address)
			}
		}
		if strings.HasPrefix(n.Address, "wheel.") && n.Action == "run" {
			built++
		}
	}
	if refused == 0 || built == 0 {
		t.Errorf("%d nodes refused, %d wheels made", refused, built)
	}
	// The second plan has everything from the first.
	begun = time.Now()
	text := world.run("plan", "-verbose")
	t.Logf("second plan: %v\n%s", time.Since(begun).Round(time.Millisecond), firstOf(text.stdout))
	for _, want := range []string{" models do not fit", "without a command", "missing script", "→ ",
		"benchmarks.hcl:"} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("plan -verbose says nothing of %q", want)
		}
	}
}

func firstOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func readFacts(t *testing.T) *pfFacts {
	t.Helper()
	text, err := os.ReadFile("testdata/preflight/facts.json")
	var f pfFacts
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

func gitIn(t *testing.T, repo string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", repo}, args...)...).Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// makeHistory makes a repository in which each commit under study follows a parent with the scripts of the facts.
func (f *pfFacts) makeHistory(t *testing.T, repo string) {
	t.Helper()
	var in strings.Builder
	mark := 0
	commit := func(message, tag string, files map[string]string, anew bool) {
		mark++
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%s\n",
			mark, 1_700_000_000+mark, len(message), message)
		if mark > 1 {
			fmt.Fprintf(&in, "from :%d\n", mark-1)
		}
		if anew {
			in.WriteString("deleteall\n")
		}
		for name, text := range files {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
		fmt.Fprintf(&in, "\nreset refs/tags/%s\nfrom :%d\n\n", tag, mark)
	}
	for _, c := range f.Commits {
		files := f.tree(&c)
		commit("before "+c.Commit, "p-"+c.Commit, files, true)
		changed := map[string]string{}
		for _, name := range c.Changed {
			changed[name] = files[name] + "# " + c.Commit + "\n"
		}
		commit(c.Title, "h-"+c.Commit, changed, false)
	}
	if out, err := exec.Command("git", "init", "-q", "--bare", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command("git", "-C", repo, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// tree returns a parent's tree: scripts and an engine with the options of the facts.
func (f *pfFacts) tree(c *pfCommit) map[string]string {
	files := map[string]string{"README.md": c.Commit + "\n", "vllm/__init__.py": ""}
	for name, s := range c.Scripts {
		module := strings.HasPrefix(name, "vllm/")
		var b strings.Builder
		b.WriteString("import argparse\n\nfrom vllm.engine.arg_utils import EngineArgs\nfrom vllm.utils import " +
			"FlexibleArgumentParser\n\n\ndef add_cli_args(parser):\n")
		b.WriteString(f.calls(s.Options))
		if s.Engine {
			b.WriteString("    parser = EngineArgs.add_cli_args(parser)\n")
		}
		if !module {
			maker := "argparse.ArgumentParser"
			if s.Flexible {
				maker = "FlexibleArgumentParser"
			}
			fmt.Fprintf(&b,
				"\n\nif __name__ == \"__main__\":\n    parser = %s()\n    add_cli_args(parser)\n    args = "+
					"parser.parse_args()\n", maker)
		}
		files[name] = b.String()
		if module {
			sub := strings.TrimSuffix(path.Base(name), ".py")
			files["vllm/entrypoints/cli/benchmark/"+sub+".py"] = "from vllm.benchmarks." + sub +
				" import add_cli_args\n\n\nclass Sub:\n    @classmethod\n    def add_cli_args(cls, parser):\n       " +
				" add_cli_args(parser)\n"
		}
	}
	if c.Engine != nil {
		files["vllm/engine/arg_utils.py"] = "class EngineArgs:\n\n    @staticmethod\n    def add_cli_args(parser):\n" +
			strings.ReplaceAll(f.calls(*c.Engine), "    parser", "        parser") + "        return parser\n"
	}
	if c.Server != nil {
		files["vllm/entrypoints/openai/api_server.py"] = "from vllm.engine.arg_utils import EngineArgs\n\n\ndef " +
			"make_arg_parser(parser):\n" + f.calls(*c.Server) +
			"    return EngineArgs.add_cli_args(parser)\n\n\nparser = make_arg_parser(FlexibleArgumentParser())\n"
	}
	if c.Registry != "" {
		var b strings.Builder
		b.WriteString("_MODELS = {\n")
		for _, i := range f.Registries[c.Architectures] {
			fmt.Fprintf(&b, "    \"%s\": (\"some\", \"%[1]s\"),\n", f.Architectures[i])
		}
		files[c.Registry] = b.String() + "}\n"
	}
	return files
}

// calls returns calls of add_argument for the options of a parser.
func (f *pfFacts) calls(parser int) string {
	var b strings.Builder
	for _, i := range f.Parsers[parser] {
		words := strings.Fields(f.Options[i])
		if words[0] == "*" {
			b.WriteString("    parser.add_argument(f\"--{key}\", **value)\n")
			continue
		}
		b.WriteString("    parser.add_argument(")
		for _, name := range strings.Split(words[0], ",") {
			fmt.Fprintf(&b, "%q, ", name)
		}
		for _, w := range words[1:] {
			switch key, value, _ := strings.Cut(w, "="); {
			case w == "**":
				b.WriteString("**kwargs, ")
			case w == "required":
				b.WriteString("required=True, ")
			case w == "typed":
				b.WriteString("type=int, ")
			case w == "default":
				b.WriteString("default=1, ")
			case key == "choices":
				fmt.Fprintf(&b, "choices=[%q], ", strings.Split(value, "|"))
				text := strings.ReplaceAll(b.String(), `" "`, `", "`)
				text = strings.ReplaceAll(text, `[["`, `["`)
				b.Reset()
				b.WriteString(strings.ReplaceAll(text, `"]]`, `"]`))
			default:
				fmt.Fprintf(&b, "%s=%q, ", key, value)
			}
		}
		b.WriteString(")\n")
	}
	return b.String() + "    pass\n"
}

// serverFlags are options of the engine; true if they take a value. Campaigns give them to the server, not to the
// client.
var serverFlags = map[string]bool{
	"--dtype": true, "--tensor-parallel-size": true, "-tp": true, "--quantization": true, "--max-model-len": true,
	"--max-num-batched-tokens":  true,
	"--guided-decoding-backend": true, "--trust-remote-code": false, "--enable-prefix-caching": false,
	"--enable-chunked-prefill": false,
	"--use-v2-block-manager":   false,
}

var assignment = regexp.MustCompile(`^[A-Z_0-9]+=`)

// campaign returns the file of a campaign about the facts. Model, devices and data are declared once for all commits.
func (f *pfFacts) campaign(repo, wheels string, rev func(pfCommit) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, campaignHead, repo, wheels)
	for _, c := range f.Commits {
		mode, env, server, client := c.sides()
		fmt.Fprintf(&b,
			"commit %q {\n  rev    = %q\n  title  = %q\n  params = { mode = %q, model = %q, gpus = %d, version = "+
				"%q, env = { %s }, server = %q, client = %q }\n}\n",
			c.Commit, rev(c), strings.ReplaceAll(c.Title, "${", "$${"), mode, c.Model, max(c.GPUs, 1),
			max(c.Version, "0"), env, server, client)
	}
	return b.String()
}

// sides divides a command between server and client.
func (c *pfCommit) sides() (mode, env, server, client string) {
	words := strings.Fields(c.Command)
	var vars, of, to []string
	for len(words) > 0 && assignment.MatchString(words[0]) {
		name, value, _ := strings.Cut(words[0], "=")
		vars, words = append(vars, fmt.Sprintf("%s = %q", name, value)), words[1:]
	}
	switch {
	case len(words) == 0:
		return "none", "", "", ""
	case strings.Contains(c.Command, "serving") || strings.Contains(c.Command, "bench serve") ||
		strings.Contains(c.Command, "guided"):
		mode = "serving"
	default:
		mode = "offline"
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		takes, engine := serverFlags[w]
		switch {
		case w == "--model" && i+1 < len(words) && strings.HasPrefix(strings.Trim(words[i+1], `"`), "/"):
			to = append(to, w, c.Model) // a path of one machine: the model is the one that the reports name
			i++
		case mode == "serving" && engine && takes && i+1 < len(words):
			of = append(of, w, words[i+1])
			i++
		case mode == "serving" && engine:
			of = append(of, w)
		default:
			to = append(to, w)
		}
	}
	if mode == "serving" {
		to = append(to, c.data(to)...)
	}
	return mode, strings.Join(vars, ", "), strings.Join(of, " "), strings.Join(to, " ")
}

// data gives a client a data set if its command names none, or names ShareGPT without a file.
func (c *pfCommit) data(words []string) []string {
	named := slices.Contains(words, "--dataset-name")
	switch {
	case slices.Contains(words, "--dataset") || slices.Contains(words, "--dataset-path"):
		return nil
	case named && slices.Contains(words, "sharegpt"):
		return []string{"--dataset-path", "sharegpt.json"}
	case named:
		return nil
	case strings.HasPrefix(max(c.Version, "1"), "0.4") || c.Version == "" && c.Status != "exception" &&
		c.Status != "success":
		return []string{"--dataset", "sharegpt.json"}
	}
	return []string{"--dataset-name", "random"}
}

const campaignHead = `
repo "vllm" { path = %q }
variable "wheels" { default = %q }

variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" {}

fetch "sharegpt" {
  url    = "https://data.example/sharegpt.json"
  sha256 = "35f0e213ce091ed9b9af2a1f0755e9d39f9ccec34ab281cd4ca60d70f6479ba4"
}
wheel "vllm" {
  for_each = candidates
  source   = each.source
  prebuilt = ["${var.wheels}/${each.rev}/vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl"]
  build { command = "pip wheel . --no-deps -w $OUT" }
}
known_issue "port_8791" {
  for_each = candidates
  when     = pep440_match(each.commit.params.version, ">=0.6.3,<0.6.5") && each.commit.params.mode == "serving"
  probe    = "python3 -c 'import vllm.entrypoints.openai.api_server'"
  reason   = "the port is bound twice"
}
benchmark "serving" {
  for_each = { for k, c in candidates : k => c if c.commit.params.mode == "serving" }
  client   = each.commit.parent
  data     = { "sharegpt.json" = fetch.sharegpt, "vllm/" = wheel.vllm[each.key] }
  env      = each.commit.params.env
  secrets  = ["HF_TOKEN"]
  server {
    command = "python3 -m vllm.entrypoints.openai.api_server --model ${each.commit.params.model} --port $PORT ${each.commit.params.server}"
    ready { http = "/health" }
  }
  command = "${each.commit.params.client} --port $PORT"
  gpus {
    count  = each.commit.params.gpus
    model  = "H100"
    memory = "79GiB"
  }
  metrics {
    metric "output" { match = "Output token throughput \\(tok/s\\): +([0-9.]+)" }
  }
}
benchmark "offline" {
  for_each = { for k, c in candidates : k => c if c.commit.params.mode == "offline" }
  client   = each.commit.parent
  data     = { "vllm/" = wheel.vllm[each.key] }
  env      = each.commit.params.env
  secrets  = ["HF_TOKEN"]
  command  = each.commit.params.client
  gpus {
    count  = each.commit.params.gpus
    model  = "H100"
    memory = "79GiB"
  }
  metrics {
    metric "rate" { match = "Throughput: ([0-9.]+)" }
  }
}
compare "all" { of = [benchmark.serving, benchmark.offline] }
`
