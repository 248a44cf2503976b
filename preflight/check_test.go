package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/requirement"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

// trees are files by revision and path. They stand in for a repository; the tests of package git read a real one.
type trees map[string]map[string]string

func (t trees) Dirs(_ context.Context, at []revision.Place) (map[revision.Place][]revision.Entry, error) {
	found := map[revision.Place][]revision.Entry{}
	for _, p := range at {
		seen := map[string]bool{}
		for name := range t[p.Rev] {
			rest, below := strings.CutPrefix(name, p.Path+"/")
			if p.Path == "" {
				rest, below = name, true
			}
			first, _, dir := strings.Cut(rest, "/")
			if below && !seen[first] {
				seen[first] = true
				found[p] = append(found[p], revision.Entry{Name: first, Dir: dir, ID: p.Rev + ":" +
					path.Join(p.Path, first)})
			}
		}
	}
	return found, nil
}

func (t trees) Files(_ context.Context, _ string, ids []string) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, id := range ids {
		rev, name, _ := strings.Cut(id, ":")
		found[id] = []byte(t[rev][name])
	}
	return found, nil
}

const parent, commit = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "cccccccccccccccccccccccccccccccccccccccc"

// engine is a serving engine with a client, a server and offline scripts.
var engine = map[string]string{
	"benchmarks/bench_serving.py": `
import argparse
from helper import add_dataset_options

def main(args: argparse.Namespace):
    print(args)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", type=str, default="vllm", choices=["vllm", "tgi"])
    parser.add_argument("--model", type=str,
                        required=True, help="a (model")
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--request-rate", type=float, default=float("inf"))
    parser.add_argument("--disable-tqdm", action="store_true")
    parser.add_argument("--port", type=int, default=8000)
    add_dataset_options(parser)
    main(parser.parse_args())
`,
	"benchmarks/helper.py": `
def add_dataset_options(parser):
    group = parser.add_argument_group("data")
    group.add_argument("--dataset-name", type=str, default="sharegpt", choices=["sharegpt", "random"])
    group.add_argument("--dataset-path", type=str, default=None)
    group.add_argument("--random-input-len", type=int, default=1024)
    group.add_argument("--random-output-len", type=int, default=128)
`,
	"benchmarks/bench_latency.py": `
from vllm.engine.arg_utils import EngineArgs
from vllm.utils import FlexibleArgumentParser

def main(args): pass

if __name__ == '__main__':
    p = FlexibleArgumentParser(description="x")
    p.add_argument('--input-len', type=int, default=32)
    p.add_argument("--batch-size", type=int)
    p = EngineArgs.add_cli_args(p)
    args = p.parse_args()
`,
	"benchmarks/moved.py": `
import sys

if __name__ == "__main__":
    print("""DEPRECATED: This script has been moved.
Please use: vllm bench latency""")
    sys.exit(1)
`,
	"benchmarks/dynamic.py": `
import argparse
parser = argparse.ArgumentParser()
for name in NAMES:
    parser.add_argument(f"--{name}", type=int)
args = parser.parse_args()
`,
	"benchmarks/tolerant.py": `
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--x")
args, rest = parser.parse_known_args()
`,
	"benchmarks/data.json": "{}",
	"vllm/__init__.py":     "",
	"vllm/utils.py":        "class FlexibleArgumentParser: pass\n",
	"vllm/engine/arg_utils.py": `
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model", type=str)
        parser.add_argument("--tensor-parallel-size", "-tp", type=int, default=1)
        parser.add_argument("--dtype", choices=['auto', 'half', 'float16'], default='auto')
        parser.add_argument("--enable-prefix-caching", **kwargs["enable_prefix_caching"])
        parser.add_argument("--speculative-config", type=json.loads)
        return parser

class AsyncEngineArgs(EngineArgs):
    @staticmethod
    def add_cli_args(parser, async_args_only=False):
        parser = EngineArgs.add_cli_args(parser)
        parser.add_argument("--disable-log-requests", action="store_true")
        return parser
`,
	"vllm/entrypoints/openai/api_server.py": `
from vllm.entrypoints.openai.cli_args import make_arg_parser
from vllm.utils import FlexibleArgumentParser

if __name__ == "__main__":
    parser = FlexibleArgumentParser()
    parser = make_arg_parser(parser)
    args = parser.parse_args()
`,
	"vllm/entrypoints/openai/cli_args.py": `
from vllm.engine.arg_utils import AsyncEngineArgs

def make_arg_parser(parser):
    parser.add_argument("--host", type=str)
    parser.add_argument("--port", type=int, default=8000)
    parser = AsyncEngineArgs.add_cli_args(parser)
    return parser
`,
	"vllm/model_executor/models/registry.py": `_MODELS = {"LlamaForCausalLM": ("llama", "LlamaForCausalLM"), ` +
		`"OPTForCausalLM": ("opt", "OPTForCausalLM")}`,
}

var models = []requirement.Model{
	{Name: "org/small", Parameters: 8e9, Bytes: 16e9, Architecture: "LlamaForCausalLM", MaxLen: 8192,
		TokenBytes: 131072},
	{Name: "org/large", Parameters: 70e9, Bytes: 140e9, Architecture: "LlamaForCausalLM", MaxLen: 8192,
		TokenBytes: 327680},
	{Name: "org/new", Parameters: 1e9, Bytes: 2e9, Architecture: "NewForCausalLM"},
	{Name: "org/closed", Parameters: 1e9, Bytes: 2e9, Architecture: "LlamaForCausalLM", Gated: true},
	{Name: "org/none", Missing: true},
}

// said returns the findings of the checks about one benchmark, without those that are ok: "check status evidence".
func said(t *testing.T, b Benchmark, change func(*Input)) []string {
	t.Helper()
	old := revision.Tree{Repo: "r", Rev: parent}
	b.Address, b.Commit, b.Candidate, b.Place = `benchmark.b["c/base"]`, "c", "c/base", "f.hcl:1"
	b.Client, b.Engine, b.Installed = old, revision.Tree{Repo: "r", Rev: commit, Patched: b.Engine.Patched}, old
	in := &Input{
		Commits: []Commit{{Name: "c", Repo: "r", Rev: commit, Parent: parent, Known: true, Parents: []string{parent},
			Changed: []string{"vllm/utils.py"}, Place: "f.hcl:2"}},
		Candidates: []Candidate{{Key: "c/base", Commit: "c", Baseline: true, Tree: old, Place: "f.hcl:2"}},
		Benchmarks: []Benchmark{b}, Models: func() []requirement.Model { return models },
		Devices: map[string][]requirement.Device{
			"": slices.Repeat([]requirement.Device{{Name: "NVIDIA H100 80GB HBM3", Memory: 85520809984}}, 4),
		},
	}
	if change != nil {
		change(in)
	}
	found, err := Run(t.Context(), in, trees{parent: engine, commit: engine})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range found {
		if f.Status != OK {
			list = append(list, fmt.Sprintf("%s %s %s", f.Check, f.Status, f.Evidence))
			if of := b.Fill.Place; of != "" && f.Place != of {
				t.Errorf("%s is said of %s, not of %s", f.Evidence, f.Place, of)
			}
		}
	}
	return list
}

func TestCommandsAreHeldAgainstTheirPrograms(t *testing.T) {
	const serve = "python3 -m vllm.entrypoints.openai.api_server --model org/small --port $PORT"
	const fine = "python benchmarks/bench_serving.py --model org/small --dataset-name random --port $PORT"
	tests := []struct {
		name, server, command string
		want                  []string // beginnings
	}{
		{name: "all is well", server: serve, command: fine},
		{name: "abbreviations, joined values and underscores", server: serve +
			" --tensor_parallel_size=1 --no-enable-prefix-caching --speculative-config.method x",
			command: fine + " --num-prompt 3 --random-input=5 --disable"},
		{name: "a flag of the server on the client", server: serve, command: fine + " --dtype half",
			want: []string{"flag fail benchmarks/bench_serving.py does not know --dtype"}},
		{name: "a flag of the client on the server", server: serve + " --request-rate 1", command: fine,
			want: []string{"flag fail python -m vllm.entrypoints.openai.api_server does not know --request-rate"}},
		{name: "underscores where the parser has none", server: serve, command: fine + " --num_prompts 3",
			want: []string{"flag fail benchmarks/bench_serving.py does not know --num_prompts"}},
		{name: "ambiguous", server: serve, command: fine + " --random 3",
			want: []string{"flag fail benchmarks/bench_serving.py: --random is ambiguous: it could be " +
				"--random-input-len, --random-output-len"}},
		{name: "no choice", server: serve + " --dtype float8", command: fine + " --backend sglang", want: []string{
			"flag fail benchmarks/bench_serving.py: --backend takes one of vllm, tgi, not \"sglang\"",
			"flag fail python -m vllm.entrypoints.openai.api_server: --dtype takes one of"}},
		{name: "a value too many", server: serve, command: fine + " --disable-tqdm True",
			want: []string{"flag fail benchmarks/bench_serving.py: --disable-tqdm takes no value"}},
		{name: "an option without its value",
			server: "python3 -m vllm.entrypoints.openai.api_server --port $PORT --model ", command: fine +
				" --num-prompts --disable-tqdm",
			want: []string{"flag fail benchmarks/bench_serving.py: --num-prompts has no value",
				"flag fail python -m vllm.entrypoints.openai.api_server: --model has no value"}},
		{name: "required", server: serve, command: "python benchmarks/bench_serving.py --dataset-name random",
			want: []string{"flag fail benchmarks/bench_serving.py requires --model"}},
		{name: "what loops make is not known", command: "python benchmarks/dynamic.py --y 1",
			want: []string{"flag unverified benchmarks/dynamic.py does not know --y; benchmarks/dynamic.py makes " +
				"options"}},
		{name: "unknown arguments are kept", command: "python benchmarks/tolerant.py --y 1",
			want: []string{"flag unverified"}},
		{name: "engine options of offline programs",
			command: "python benchmarks/bench_latency.py --model org/small --batch_size 1 -tp 1 --input-len 5"},
		{name: "an option that the engine does not have",
			command: "python benchmarks/bench_latency.py --model org/small --use-v2-block-manager",
			want:    []string{"flag fail benchmarks/bench_latency.py does not know --use-v2-block-manager"}},
		{name: "moved", command: "python benchmarks/moved.py --model org/small",
			want: []string{`script fail benchmarks/moved.py at aaaaaaaaaaaa only prints "DEPRECATED: This script ` +
				`has been moved."`}},
		{name: "no script", command: "cd benchmarks && python bench.py",
			want: []string{"script fail bench.py does not exist"}},
		{name: "in another directory", command: "cd benchmarks && python bench_latency.py --model org/small"},
		{name: "no module", server: "python -m vllm.entrypoints.api --model org/small", command: fine,
			want: []string{"script fail the module vllm.entrypoints.api does not exist"}},
		{name: "a foreign module", command: "python -m pytest tests"},
		{name: "no subcommand", command: "vllm bench serve --model org/small",
			want: []string{"script fail vllm bench serve does not exist"}},
		{name: "a pattern of packages", command: "go test -bench . ./..."},
		{name: "a path of one machine", command: "python /home/ray/x/benchmark.py",
			want: []string{"path fail /home/ray/x/benchmark.py"}},
		{name: "a model of one machine",
			server:  "python3 -m vllm.entrypoints.openai.api_server --model /data/users/x/llm --port $PORT",
			command: fine, want: []string{"path fail /data/users/x/llm"}},
		{name: "no data set", server: serve, command: "python benchmarks/bench_serving.py --model org/small",
			want: []string{"dataset fail benchmarks/bench_serving.py names no data set, and the default is sharegpt"}},
		{name: "a data set without a file", server: serve, command: fine + " --dataset-path x.json",
			want: []string{"dataset fail x.json is neither in the tree"}},
		{name: "a data set that is laid there", server: serve,
			command: "python benchmarks/bench_serving.py --model org/small --dataset-path laid.json"},
		{name: "a data set of the tree", server: serve,
			command: "python benchmarks/bench_serving.py --model org/small --dataset-path ./benchmarks/data.json"},
		{name: "a data set that is made", server: serve,
			command: "curl -o x.json http://h/x && python benchmarks/bench_serving.py --model org/small " +
				"--dataset-path x.json", want: []string{"dataset unverified"}},
		{name: "out of the directory", server: serve,
			command: "python benchmarks/bench_serving.py --model org/small --dataset-path ../x.json",
			want:    []string{"dataset fail ../x.json leads out"}},
		{name: "a variable that nothing sets", command: "python benchmarks/bench_latency.py --model $MODEL",
			want: []string{"placeholder fail nothing sets the variable MODEL"}},
		{name: "no such model", command: "python benchmarks/bench_latency.py --model org/none",
			want: []string{"model fail there is no model org/none"}},
		{name: "an unknown model", command: "python benchmarks/bench_latency.py --model else/where",
			want: []string{"model unverified"}},
		{name: "too large", command: "python benchmarks/bench_latency.py --model org/large",
			want: []string{"memory fail org/large: 140 GB of weights"}},
		{name: "spread over enough", command: "GPUS=4 python benchmarks/bench_latency.py --model org/large -tp 4"},
		{name: "more devices than there are", command: "python benchmarks/bench_latency.py --model org/small -tp 8",
			want: []string{"memory fail benchmarks/bench_latency.py spreads the model over 8 devices"}},
		{name: "an architecture that is not there yet", command: "python benchmarks/bench_latency.py --model org/new",
			want: []string{"architecture fail NewForCausalLM is not in"}},
		{name: "gated", command: "python benchmarks/bench_latency.py --model org/closed", want: []string{"gated warn"}},
		{name: "more than simple commands", command: "f() { python benchmarks/no.py; }; f",
			want: []string{"script unverified"}},
		{name: "perhaps", command: "if true; then python benchmarks/no.py; fi", want: []string{"script warn"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := Benchmark{Command: program.Text{Shell: tt.command}, Server: program.Text{Shell: tt.server}, GPUs: 4,
				Data: map[string]revision.Tree{"laid.json": {}}}
			got := said(t, b, nil)
			ok := len(got) == len(tt.want)
			for i := range min(len(got), len(tt.want)) {
				ok = ok && strings.HasPrefix(got[i], tt.want[i])
			}
			if !ok {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// The command that fills caches runs before anything is measured: its mistakes fail the candidate, too.
func TestTheCommandOfAFillIsHeldAgainstItsProgram(t *testing.T) {
	const serve = "python3 -m vllm.entrypoints.openai.api_server --model org/small --port $PORT"
	const client = "python benchmarks/bench_serving.py --model org/small --dataset-name random --port $PORT"
	const alone = "python benchmarks/bench_latency.py --model org/small"
	for _, tt := range []struct {
		server, command, fill string
		want                  string // beginning; empty: nothing
	}{
		{serve, client, "true", ""},
		{serve, client, client + " --num-prompts 8", ""},
		{serve, client, client + " --dtype half", "flag fail benchmarks/bench_serving.py does not know --dtype"},
		{serve, client, "python benchmarks/no.py", "script fail benchmarks/no.py does not exist"},
		{serve, client, client + " --num-prompts $PROMPTS", "placeholder fail nothing sets the variable PROMPTS"},
		{"", alone, alone + " --input-len 8", ""},
		{"", alone, "python benchmarks/bench_latency.py --model org/none", "model fail there is no model org/none"},
		{"", alone, alone + " -tp 8", "memory fail benchmarks/bench_latency.py spreads the model over 8 devices"},
	} {
		b := Benchmark{Command: program.Text{Shell: tt.command, Place: "f.hcl:3"},
			Server: program.Text{Shell: tt.server}, GPUs: 4,
			Fill: program.Text{Shell: tt.fill, Place: "f.hcl:4"}}
		got := said(t, b, nil)
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.want)) {
			t.Errorf("%s: got %q, want %q", tt.fill, got, tt.want)
		}
	}
}

func TestPatchedFilesAreUncertain(t *testing.T) {
	b := Benchmark{Command: program.Text{
		Shell: "python benchmarks/bench_latency.py --model org/small --new-option"},
		GPUs:   1,
		Engine: revision.Tree{Patched: "vllm/engine/arg_utils.py"}}
	if got := said(t, b, nil); len(got) != 1 || !strings.HasPrefix(got[0], "flag unverified") {
		t.Errorf("got %q", got)
	}
}

func TestUnreadableFilesAreUnverified(t *testing.T) {
	in := &Input{Benchmarks: []Benchmark{{Address: "b", Commit: "c", Client: revision.Tree{Repo: "r", Rev: parent},
		Command: program.Text{Shell: "python benchmarks/no.py --x"}}}}
	found, err := Run(t.Context(), in, unreadable{})
	if err == nil || slices.ContainsFunc(found, func(f Finding) bool { return f.Status == Fail }) || len(found) == 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// A tree that its repository does not have is not an empty one.
func TestALostTreeIsUnverified(t *testing.T) {
	for _, remedy := range []string{"", "bring it back"} {
		in := &Input{
			Commits: []Commit{{Name: "c", Repo: "r", Rev: commit, Parent: parent}},
			Lost:    map[string]Refusal{commit: {Why: "repo.r lost it", Remedy: remedy}},
			Benchmarks: []Benchmark{{Commit: "c", Candidate: "c/a", Client: revision.Tree{Repo: "r", Rev: commit},
				Command: program.Text{Shell: "python benchmarks/no.py --in x.json"}}}}
		found, err := Run(t.Context(), in, trees{})
		told := slices.ContainsFunc(found, func(f Finding) bool {
			return f.Check == Script && f.Status == Unverified && strings.Contains(f.Evidence, "repo.r lost it")
		})
		warned := slices.ContainsFunc(found, func(f Finding) bool { return f.Status == Warn && f.Remedy == remedy })
		failed := slices.ContainsFunc(found, func(f Finding) bool { return f.Status == Fail })
		if err != nil || failed || !told || warned != (remedy != "") {
			t.Errorf("%q: %v, %v", remedy, found, err)
		}
	}
}

type unreadable struct{}

func (unreadable) Dirs(context.Context, []revision.Place) (map[revision.Place][]revision.Entry, error) {
	return nil, errors.New("no network")
}

func (unreadable) Files(context.Context, string, []string) (map[string][]byte, error) {
	return nil, nil
}

func TestHistoriesAreLookedAt(t *testing.T) {
	b := Benchmark{Command: program.Text{Shell: "true"}, GPUs: 1}
	tests := []struct {
		name   string
		change func(*Commit)
		want   string
	}{
		{"another parent", func(c *Commit) {
			c.Parent = commit[:39] + "d"
			c.Related = true
		}, "parent warn the declared parent is cccccccccccc, git's first parent of cccccccccccc is aaaaaaaaaaaa"},
		{"for other devices", func(c *Commit) {
			c.Changed = []string{"csrc/rocm/attention.cu", "README.md"}
		}, "architecture fail all 1 changed files are for AMD devices"},
		{"also for others", func(c *Commit) {
			c.Changed = []string{"csrc/rocm/attention.cu", "vllm/x.py"}
			c.Title = "[ROCm] faster"
		}, "architecture warn the title names AMD"},
		{"git does not know", func(c *Commit) { c.Known = false }, "parent unverified"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := said(t, b, func(in *Input) { tt.change(&in.Commits[0]) })
			if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for params, want := range map[string]int{"": 1, `{"model":"m"}`: 0} {
		got := said(t, b, func(in *Input) {
			again := in.Commits[0]
			again.Name, again.Params = "again", params
			in.Commits = append(in.Commits, again)
		})
		n := 0
		for _, line := range got {
			if strings.HasPrefix(line, `twice warn cccccccccccc is commit "`) {
				n++
			}
		}
		if n != want {
			t.Errorf("of params %q: %q", params, got)
		}
	}
}

func TestProbesThatLookAtFilesAreAnsweredByTheTree(t *testing.T) {
	tests := map[string]string{
		"grep -q OPTForCausalLM vllm/model_executor/models/registry.py":        "",
		"grep -q Nothing vllm/model_executor/models/registry.py":               "version fail",
		"! grep -q OPTForCausalLM vllm/model_executor/models/registry.py":      "version fail",
		"! grep -qE 'Opt|Never' vllm/model_executor/models/registry.py":        "",
		"grep -qi 'optfor[a-z]*LM' vllm/model_executor/models/registry.py":     "",
		"test -f vllm/utils.py && ! test -e vllm/gone.py":                      "",
		"[ -d vllm/engine ] || false":                                          "",
		"cd vllm && grep -q class utils.py":                                    "",
		"grep -q class $SRC/vllm/utils.py":                                     "",
		"test -e gone.py":                                                      "version fail",
		"python3 -c 'import vllm'":                                             "version warn",
		"grep -P x vllm/utils.py":                                              "version warn",
		"grep -q class vllm/utils.py | true":                                   "version warn",
		"":                                                                     "version fail",
		"grep -q class vllm/utils.py; test -e gone.py; grep -q x vllm/util.py": "version fail",
	}
	for _, text := range slices.Sorted(maps.Keys(tests)) {
		got := said(t, Benchmark{Command: program.Text{Shell: "true"}}, func(in *Input) {
			in.Issues = []Issue{{Name: "k", Candidate: "c/base", Probe: program.Text{Shell: text}}}
		})
		if want := tests[text]; want == "" && len(got) > 0 || want != "" &&
			(len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestVariablesThatFixesSetAreNoPlaceholders(t *testing.T) {
	b := Benchmark{Command: program.Text{
		Shell: "python benchmarks/bench_latency.py --model $MODEL --input-len $LENGTH"},
		GPUs: 1, FixEnv: []string{"MODEL"}}
	got := said(t, b, nil)
	if len(got) != 1 || got[0] != "placeholder fail nothing sets the variable LENGTH that the command uses" {
		t.Errorf("got %q", got)
	}
}

func TestFilesThatARecipeMayChangeAreUncertain(t *testing.T) {
	for _, command := range []string{"python benchmarks/gone.py",
		"python benchmarks/bench_latency.py --model org/small --new-option"} {
		b := Benchmark{Command: program.Text{Shell: command}, GPUs: 1, Mended: true}
		if got := said(t, b, nil); len(got) != 1 || strings.Contains(got[0], " fail ") {
			t.Errorf("%s: got %q", command, got)
		}
	}
}

// A machine with too few devices gives a warning; builds for another machine go on.
func TestMoreDevicesThanTheMachineHas(t *testing.T) {
	b := Benchmark{Command: program.Text{
		Shell: "python benchmarks/bench_latency.py --model org/small"}, GPUs: 16}
	if got := said(t, b, nil); len(got) != 1 || !strings.HasPrefix(got[0],
		"memory warn gpus.count is 16, and the machine has 4 such devices") {
		t.Errorf("got %q", got)
	}
}
