// Package serving_test makes sure that the stand-in of this example is what the example says of it: its bundle is its
// patches, its wheels build, its benchmarks print what the file reads, and what is broken breaks with the line that
// asks for its fix. It needs no container.
package serving_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/formats"
)

const (
	model = "standin/syllables"
	// SHA-256 of what the model says to a greeting
	answer = "e9c19f79d0a051110cf0d2e24a389c836c288bcd621b9e7753c46fba0be4cd00"
	load   = "--dataset-name random --random-input-len 16 --random-output-len 8 --num-prompts 5"
)

// TestBundleIsThePatches makes the history anew. Equal commits have equal hashes.
func TestBundleIsThePatches(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made.bundle")
	must(t, exec.Command("testdata/tinyserve/history", made))
	heads := func(bundle string) string { return must(t, exec.Command("git", "bundle", "list-heads", bundle)) }
	if got, want := heads("tinyserve.bundle"), heads(made); got != want {
		t.Errorf("tinyserve.bundle has\n%s\nand testdata/tinyserve/history makes\n%s", got, want)
	}
	must(t, exec.Command("git", "bundle", "verify", "-q", "tinyserve.bundle"))
}

// TestPrintedFormats runs the benchmarks of three eras and reads what they print with the metrics of benchmarks.hcl.
// Whatever was made faster between them, the model says the same.
func TestPrintedFormats(t *testing.T) {
	conversations := filepath.Join(t.TempDir(), "conversations.json")
	if err := os.WriteFile(conversations, []byte(must(t, exec.Command(python(t), "prompts/conversations.py"))),
		0o644); err != nil {
		t.Fatal(err)
	}
	latency := "benchmark_latency.py --input-len 8 --output-len 4 --batch-size 2 --num-iters 3"
	for _, c := range []struct {
		rev, load string
		tokens    float64 // of all answers together
		prints    []string
	}{
		{"initial", "--dataset " + conversations + " --num-prompts 5", 5 * 24, []string{
			"serving: Request throughput: N requests/s", "serving: Input token throughput: N tokens/s",
			"serving: P99 TPOT: N ms",
			"throughput: Throughput: N requests/s, N tokens/s", "latency: Avg latency: N seconds",
		}},
		{"tables", load, 5 * 8, []string{
			"serving: ============ Serving Benchmark Result ============",
			"serving: Input token throughput (tok/s):          N",
			"serving: Median ITL (ms):                         N", "latency: 90% percentile latency: N seconds",
		}},
		{"slots", load + " --percentile-metrics ttft,e2el --metric-percentiles 90", 5 * 8, []string{
			"serving: Total Token throughput (tok/s):          N",
			"serving: P90 E2EL (ms):                           N",
			"throughput: Throughput: N requests/s, N total tokens/s, N output tokens/s",
			"latency: 99% percentile latency: N seconds",
		}},
	} {
		t.Run(c.rev, func(t *testing.T) {
			t.Parallel()
			tree := install(t, c.rev, "tinynum-2.0")
			port, _ := tree.serve(t)
			out := map[string]string{
				"serving":    tree.run(t, "benchmark_serving.py --backend vllm "+c.load+" --port "+port),
				"throughput": tree.run(t, "benchmark_throughput.py --input-len 8 --output-len 4 --num-prompts 5"),
				"latency":    tree.run(t, latency),
			}
			for _, want := range c.prints {
				name, line, _ := strings.Cut(want, ": ")
				line = "(?m)^" + strings.ReplaceAll(regexp.QuoteMeta(line), "N", `[0-9.]+`) + " *$"
				if !regexp.MustCompile(line).MatchString(out[name]) {
					t.Errorf("no line %q in\n%s", want, out[name])
				}
			}
			for name, text := range out {
				if name == "serving" && c.rev == "initial" {
					continue // nothing in it is vLLM's alone
				}
				if format, err := formats.Detect(strings.NewReader(text)); format != "vllm" || err != nil {
					t.Errorf("%s is taken for %q, not vllm (%v):\n%s", name, format, err, text)
				}
			}
			samples := read(t, "serving", out["serving"])
			if samples["output_token_throughput"] <= 0 || samples["ttft_mean"] <= 0 ||
				samples["total_output_tokens"] != c.tokens {
				t.Errorf("read %v, want %v tokens and positive rates, of\n%s", samples, c.tokens, out["serving"])
			}
			if c.rev == "slots" {
				if samples := read(t, "throughput", out["throughput"]); samples["output_token_throughput"] <= 0 {
					t.Errorf("read %v of %s", samples, out["throughput"])
				}
				if samples := read(t, "latency", out["latency"]); samples["latency_avg"] <= 0 ||
					samples["latency_p99"] < samples["latency_avg"]/2 {
					t.Errorf("read %v of %s", samples, out["latency"])
				}
			}
			if text, err := tree.command(latency + " --no-such-flag").CombinedOutput(); err == nil ||
				!strings.Contains(string(text), "unrecognized arguments") {
				t.Errorf("an unknown flag is taken (%v): %s", err, text)
			}
			say := `-c "from tinyserve import *; print(LLM('` + model +
				`').generate(['hello there'] * 2, SamplingParams(max_tokens=40)))"`
			if text := must(t, tree.shell(tree.python+" "+say)); fmt.Sprintf("%x",
				sha256.Sum256([]byte(text))) != answer {
				t.Errorf("SHA-256 of the answer is %x, want %s: %s", sha256.Sum256([]byte(text)), answer, text)
			}
		})
	}
}

// TestBrokenRevisions: each is broken as the example says, and the line that it leaves asks for the fix.
func TestBrokenRevisions(t *testing.T) {
	for fix, c := range map[string]struct{ rev, command string }{
		"quokka":    {"quokka", "-c 'import tinyserve'"},
		"scheduler": {"scheduler", "-c 'import tinyserve'"},
		"tinynum1": {"step-times", "benchmarks/benchmark_throughput.py --model " + model +
			" --input-len 1 --output-len 1 --num-prompts 1"},
	} {
		t.Run(fix, func(t *testing.T) {
			t.Parallel()
			tree := install(t, c.rev, "tinynum-2.0")
			text, err := tree.shell(tree.python + " " + c.command).CombinedOutput()
			if err == nil {
				t.Fatalf("%s runs: %s", c.rev, text)
			}
			for _, f := range spec(t).Fixes {
				if f.Address.Name == fix && !regexp.MustCompile(f.Detect).Match(text) {
					t.Errorf("detect %q matches nothing of\n%s", f.Detect, text)
				}
			}
		})
	}
}

// TestPatches: one is refused, one ends the server under load, and the others leave the answers as they are.
func TestPatches(t *testing.T) {
	for name, c := range map[string]struct {
		parent         string
		refused, fatal bool
	}{
		"row-order":        {parent: "initial"},
		"incremental-text": {parent: "quokka"},
		"one-prompt":       {parent: "concurrency", fatal: true},
		"slots":            {parent: "tinynum-2", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch, err := filepath.Abs("patches/" + name + ".diff")
			if err != nil {
				t.Fatal(err)
			}
			source := checkout(t, c.parent)
			apply := exec.Command("git", "apply", patch)
			apply.Dir = source
			text, err := apply.CombinedOutput()
			if refused := err != nil; refused != c.refused {
				t.Fatalf("refused: %v, want %v: %s", refused, c.refused, text)
			}
			if !c.fatal {
				return
			}
			tree := installTree(t, source, "tinynum-2.0")
			must(t, exec.Command("cp", "-R", filepath.Join(source, "tinyserve/core"),
				filepath.Join(tree.site, "tinyserve")))
			port, ended := tree.serve(t)
			out := tree.run(t,
				"benchmark_serving.py --dataset-name random --random-input-len 8 --random-output-len 20 "+
					"--num-prompts 40 --port "+port)
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the server ended as if all were well")
				}
			case <-time.After(time.Minute):
				t.Error("the server lives")
			}
			if strings.Contains(out, "Successful requests:                     40") {
				t.Errorf("all requests were answered by a server that is dead:\n%s", out)
			}
		})
	}
}

// tree is a revision with its installed wheel.
type tree struct{ source, site, python, path string }

// install builds the wheel of a revision and installs it beside tinyhub and a tinynum.
func install(t *testing.T, rev, tinynum string) tree {
	t.Helper()
	return installTree(t, checkout(t, rev), tinynum)
}

func installTree(t *testing.T, source, tinynum string) tree {
	t.Helper()
	dir := t.TempDir()
	tr := tree{source: source, site: filepath.Join(dir, "site"), python: python(t)}
	base, err := filepath.Abs("base")
	if err != nil {
		t.Fatal(err)
	}
	tr.path = strings.Join([]string{tr.site, filepath.Join(base, "tinyhub-2.0"), filepath.Join(base, tinynum)}, ":")
	build := filepath.Join(dir, "build")
	must(t, exec.Command("cp", "-R", source, build))
	pip := func(args ...string) {
		c := exec.Command(tr.python, append([]string{"-m", "pip", "--disable-pip-version-check"}, args...)...)
		c.Dir = build
		must(t, c)
	}
	pip("wheel", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", dir, ".")
	wheels, _ := filepath.Glob(filepath.Join(dir, "*.whl"))
	if len(wheels) != 1 {
		t.Fatalf("wheels: %v", wheels)
	}
	pip("install", "-q", "--no-index", "--no-deps", "--root-user-action=ignore", "--target", tr.site, wheels[0])
	return tr
}

func checkout(t *testing.T, rev string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source")
	must(t, exec.Command("git", "clone", "-q", "-c", "advice.detachedHead=false", "-b", rev, "tinyserve.bundle", dir))
	return dir
}

// shell runs a command in the source tree, with the installed wheel.
func (tr tree) shell(command string) *exec.Cmd {
	c := exec.Command("sh", "-c", "exec "+command)
	c.Dir, c.Env = tr.source, append(os.Environ(), "PYTHONPATH="+tr.path, "PYTHONDONTWRITEBYTECODE=1")
	if strings.Contains(command, " -c ") || strings.Contains(command, " -m ") {
		c.Dir = filepath.Dir(tr.site) // the tree's own tinyserve has no extension
	}
	return c
}

func (tr tree) command(benchmark string) *exec.Cmd {
	script, args, _ := strings.Cut(benchmark, " ")
	return tr.shell(tr.python + " benchmarks/" + script + " --model " + model + " " + args)
}

// run returns what a benchmark prints on its standard output.
func (tr tree) run(t *testing.T, benchmark string) string {
	t.Helper()
	return must(t, tr.command(benchmark))
}

// serve starts the server and waits until it is ready. Its end is told.
func (tr tree) serve(t *testing.T) (port string, ended <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	server := tr.shell(tr.python + " -m tinyserve.entrypoints.openai.api_server --model " + model + " --port " + port)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	gone := make(chan struct{})
	go func() { done <- server.Wait(); close(gone) }()
	t.Cleanup(func() { server.Process.Kill(); <-gone })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if answer, err := http.Get("http://127.0.0.1:" + port + "/health"); err == nil {
			answer.Body.Close()
			return port, done
		}
		select {
		case <-gone:
			t.Fatalf("the server ended:\n%s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("the server is not ready after a minute")
	return "", nil
}

// read returns what the metrics of a benchmark in benchmarks.hcl find.
func read(t *testing.T, benchmark, text string) map[string]float64 {
	t.Helper()
	for _, b := range spec(t).Benchmarks {
		if b.Address.Name != benchmark {
			continue
		}
		parser, err := formats.Lookup(b.Metrics.Format)
		if err != nil {
			t.Fatal(err)
		}
		result, err := parser.Parse(metrics.Output{Stdout: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		if result.Failure != nil {
			t.Errorf("%s: %+v", benchmark, result.Failure)
		}
		samples := map[string]float64{}
		for _, s := range result.Samples {
			samples[s.Metric] = s.Value
		}
		return samples
	}
	t.Fatalf("no benchmark %s", benchmark)
	return nil
}

func spec(t *testing.T) *hclspec.Spec {
	t.Helper()
	s, _, diags := hclspec.Load(hclspec.Options{Dir: "."})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return s
}

// python finds a Python that can build extensions.
func python(t *testing.T) string {
	t.Helper()
	const can = `
import importlib.util, os, sysconfig
assert all(map(importlib.util.find_spec, ["pip", "setuptools", "wheel"]))
assert os.path.exists(sysconfig.get_path("include") + "/Python.h")
`
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", can).Run() == nil {
			return name
		}
	}
	needtest.Missing(t,
		"no Python that builds extensions (apt-get install gcc python3-dev python3-pip python3-setuptools "+
			"python3-wheel)")
	return ""
}

func must(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w\n%s%s", c.Args, err, out, errors.String()))
	}
	return string(out)
}
