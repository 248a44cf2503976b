package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec/dataset"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/report/document"
)

// contradiction is a statement that five reports on one campaign made against their own data or against each other. It
// is stated again as a table that is imported.
type contradiction struct {
	id     string
	says   string            // what was published
	models map[string]string // of commits, as their commands name them
	table  []string          // JSON lines
	// What must come of it: statements that are refused, each with a part of the reason; states by commit/variant;
	// computed counts; diagnoses; at most so many of the claims that stand.
	refused map[string]string
	states  map[string]string
	counts  map[string]int
	told    []string
	stands  int
}

// value is a line with a number.
func value(commit, side string, number float64, more ...string) string {
	return fmt.Sprintf(`{"commit":"%s","side":"%s","metric":"output_token_throughput","unit":"tok/s","value":%v%s}`,
		commit, side, number, rest(more))
}

// status is a line without a number.
func status(commit, side, what string, more ...string) string {
	return fmt.Sprintf(`{"commit":"%s","side":"%s","status":"%s"%s}`, commit, side, what, rest(more))
}

func claim(name string, count int, more ...string) string {
	return fmt.Sprintf(`{"claim":"%s","count":%d%s}`, name, count, rest(more))
}

func verdict(commit, side, against, what string) string {
	return fmt.Sprintf(`{"commit":"%s","side":"%s","against":"%s","verdict":"%s"}`, commit, side, against, what)
}

// rest writes further fields, given as name and value in turns.
func rest(more []string) string {
	var b strings.Builder
	for i := 0; i+1 < len(more); i += 2 {
		fmt.Fprintf(&b, `,%q:%q`, more[i], more[i+1])
	}
	return b.String()
}

// whole returns n commits with a value on all three sides; their names begin with a letter.
func whole(letter string, n int) (lines []string) {
	for i := range n {
		for _, side := range []string{"baseline", "human", "agent"} {
			lines = append(lines, value(fmt.Sprintf("%s%07d", letter, i), side, 100+float64(i)))
		}
	}
	return lines
}

// pairs is n commits with a value of the human and of the agent.
func pairs(letter string, n int) (lines []string) {
	for i := range n {
		lines = append(lines, value(fmt.Sprintf("%s%07d", letter, i), "human", 50),
			value(fmt.Sprintf("%s%07d", letter, i), "agent", 51))
	}
	return lines
}

// declared returns n commits with no record except that they were not run.
func declared(letter string, n int) (lines []string) {
	for i := range n {
		lines = append(lines, status(fmt.Sprintf("%s%07d", letter, i), "baseline", "not_run"))
	}
	return lines
}

func join(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

const (
	small  = "facebook/opt-125m"
	llama  = "meta-llama/Llama-3.1-8B-Instruct"
	older  = "meta-llama/Meta-Llama-3-8B-Instruct"
	aimv2  = "ValueError: 'aimv2' is already used by a Transformers config, pick another name."
	parent = "1111111111111111111111111111111111111111"
)

func contradictions() []contradiction {
	return []contradiction{
		{id: "A1", says: "22 working, in a table of 20", table: join(whole("a", 20), []string{claim("complete", 22)}),
			refused: map[string]string{"complete": "22 is typed, and the records give 20"},
			counts:  map[string]int{"complete": 20}},
		{id: "A2", says: "wins 4, ties 14; +1.0 % is a win",
			table: join(whole("a", 20), []string{claim("win", 4), claim("tie", 14),
				verdict("a0000001", "agent", "human", "win")}),
			refused: map[string]string{"win": "not comparable: how they were measured is not recorded",
				"tie": "14 is typed, and the records give 0"}},
		{id: "A3", says: "4 wins in one report, 5 in another, of the same rows",
			table:   join(whole("a", 20), []string{claim("win", 4), claim("win", 5)}),
			refused: map[string]string{"win": "the records give 0"}, stands: 0},
		{id: "A4", says: "22 in the heading, 20 in the table, 17 in the conclusion",
			table: join(whole("a", 20), []string{claim("complete", 22), claim("complete", 20),
				claim("complete", 17)}),
			refused: map[string]string{"complete": "the records give 20"}, counts: map[string]int{"complete": 20},
			stands: 1},
		{id: "A15", says: "a commit without a number is a tie", table: []string{
			`{"commit":"a3223766","side":"human","metric":"tpot_mean","unit":"ms","value":null}`,
			`{"commit":"a3223766","side":"agent","metric":"tpot_mean","unit":"ms","value":null}`,
			claim("tie", 8), verdict("a3223766", "agent", "human", "tie")},
			refused: map[string]string{"tie": "the metric has no value"},
			states:  map[string]string{"a3223766/human": "no_value", "a3223766/agent": "no_value"}},
		{id: "A16", says: "8 complete, of which 4 have three numbers", table: join(whole("a", 4), []string{
			`{"commit":"015069b0","side":"human","metric":"ttft_mean","unit":"ms","value":"N/A"}`,
			`{"commit":"22d33bac","side":"agent","metric":"ttft_mean","unit":"ms","value":"N/A"}`,
			`{"commit":"296f927f","side":"baseline","metric":"ttft_mean","unit":"ms","value":"N/A"}`,
			value("2a052011", "baseline", 1524.64), value("2a052011", "human", 1383.15), claim("complete", 8)}),
			refused: map[string]string{"complete": "8 is typed, and the records give 4"},
			counts:  map[string]int{"complete": 4}},
		{id: "B1", says: "categories that sum to 93 of 96",
			table:   join(declared("a", 96), partition("summary of 000", 22, 8, 14, 5, 8, 6, 6, 24)),
			refused: map[string]string{"summary": "its parts sum to 93, and there are 96 commits"},
			counts:  map[string]int{"commits": 96}},
		{id: "B2", says: "categories that sum to 102 of 96",
			table:   join(declared("a", 96), partition("summary of 001", 44, 14, 6, 5, 8, 19, 6)),
			refused: map[string]string{"summary": "its parts sum to 102, and there are 96 commits"}},
		{id: "C1", says: "the agent crashed the server, of which the baseline never started", table: []string{
			status("e493e485", "agent", "failed", "cause", "agent patch crashes server"),
			status("e493e485", "baseline", "failed", "cause", "aimv2_duplicate", "evidence", aimv2)},
			states: map[string]string{"e493e485/agent": "no_baseline", "e493e485/baseline": "failed"},
			told:   []string{"undiagnosed: no line of a log shows", "aimv2_duplicate: ValueError"}},
		{id: "C2", says: "the agent crashed, both crashed, the baseline failed", table: []string{
			status("3092375e", "agent", "failed", "cause", "agent patch crashes server"),
			status("3092375e", "baseline", "failed")},
			states: map[string]string{"3092375e/agent": "no_baseline"}},
		{id: "C3", says: "the agent crashed, and the baseline has no metric", table: []string{
			status("8d75fe48", "agent", "failed", "cause", "agent crashed"),
			`{"commit":"8d75fe48","side":"baseline","metric":"ttft_mean","unit":"ms","value":null}`},
			states: map[string]string{"8d75fe48/agent": "no_baseline", "8d75fe48/baseline": "no_value"}},
		{id: "C4", says: "the agent crashed and was skipped, the human failed and has 1,383.15", table: []string{
			status("2a052011", "agent", "failed"), status("2a052011", "agent", "skipped"),
			status("2a052011", "human", "failed"), value("2a052011", "human", 1383.15)},
			states: map[string]string{"2a052011/agent": "conflict", "2a052011/human": "conflict"}},
		{id: "C8", says: "a human value, and the human failed",
			table: []string{value("67da5720", "human", 2415.81), status("67da5720", "human", "failed"),
				value("67da5720", "agent", 2400)},
			states: map[string]string{"67da5720/human": "conflict", "67da5720/agent": "measured"},
			counts: map[string]int{"complete": 0}},
		{id: "C9", says: "human and agent values, and others for the same, and a failure", table: []string{
			value("6d646d08", "human", 1102.01), status("6d646d08", "human", "failed"),
			value("6d646d08", "agent", 1110.22), value("6d646d08", "agent", 2380.4)},
			states: map[string]string{"6d646d08/human": "conflict", "6d646d08/agent": "conflict"},
			told:   []string{"[1110.22 2380.4] tok/s are recorded for the same measurement"}},
		{id: "C10", says: "measured on 4 GPUs, and too large to be measured, unfixable", table: []string{
			value("310aca88", "baseline", 97.4), status("310aca88", "baseline", "infeasible", "cause", "large model"),
			`{"commit":"310aca88","fixable":false}`},
			states:  map[string]string{"310aca88/baseline": "conflict"},
			refused: map[string]string{"record": "attempts with a fix, not from a statement"}},
		{id: "C11", says: "exceeds one GPU, of a model that was loaded on one", table: []string{
			status("0ec82edd", "baseline", "failed", "cause", "exceeds single-GPU memory"),
			status("c0569dbc", "baseline", "infeasible", "cause", "multi-GPU required")},
			states: map[string]string{"0ec82edd/baseline": "failed"},
			told: []string{`undiagnosed: no line of a log shows "exceeds single-GPU memory"`,
				`undiagnosed: no line of a log shows "multi-GPU required"`}},
		{id: "C15", says: "no model specified, of commands that name one", table: []string{
			status("4fb56914", "baseline", "skipped", "cause", "no model specified in performance command"),
			claim("no model", 4)},
			refused: map[string]string{"no model": "nothing that is recorded computes this count"},
			told:    []string{`no line of a log shows "no model specified`}},
		{id: "C22", says: "8 baselines failed everywhere, most of which were never tried", table: []string{
			value("bfdb1ba5", "baseline", 6998), value("22dd9c27", "baseline", 6561),
			status("c45f3c3a", "baseline", "no_image"), status("d4bc1a4d", "baseline", "no_image"),
			status("ec3b5ce9", "baseline", "no_image"), status("9a3b8832", "baseline", "skipped"),
			status("e7523c2e", "baseline", "skipped"), status("2f192835", "baseline", "failed"),
			claim("baseline failed", 8)},
			refused: map[string]string{"baseline failed": "8 is typed, and the records give 1"},
			counts: map[string]int{"baseline failed": 1, "baseline no_image": 3, "baseline skipped": 2,
				"baseline": 2}},
		{id: "D1", says: "31 commits with more than one model, silently", models: map[string]string{"22d33bac": llama},
			table: []string{
				value("22d33bac", "human", 2046.9, "model", older), value("22d33bac", "agent", 2813.8, "model", llama),
				verdict("22d33bac", "agent", "human", "win")},
			states:  map[string]string{"22d33bac/human": "excluded", "22d33bac/agent": "measured"},
			refused: map[string]string{"win": "another methodology"}},
		{id: "D2", says: "three declared models and a fourth measured",
			models: map[string]string{"015069b0": "Qwen/Qwen3-7B-Instruct"}, table: []string{
				value("015069b0", "baseline", 1428, "model", "Qwen/Qwen2.5-7B-Instruct"),
				value("015069b0", "human", 198.3, "model", "Qwen/Qwen3-1.7B"),
				verdict("015069b0", "human", "baseline", "loss")},
			states:  map[string]string{"015069b0/baseline": "excluded", "015069b0/human": "excluded"},
			refused: map[string]string{"loss": "measured with Qwen/Qwen3-1.7B"}},
		{id: "D3", says: "a change for Mixtral, measured with another architecture",
			models: map[string]string{"2a052011": "mistralai/Mixtral-8x7B-Instruct-v0.1"}, table: []string{
				value("2a052011", "human", 1383.15, "model", "Qwen/Qwen2.5-7B-Instruct")},
			states: map[string]string{"2a052011/human": "excluded"}, told: []string{"another methodology"}},
		{id: "D9", says: "a table of one model that holds four", table: []string{
			value("22d33bac", "baseline", 3026, "model", llama),
			value("296f927f", "baseline", 813, "model", "ibm-ai-platform/Bamba-9B"), value("22d33bac", "human", 3000),
			verdict("22d33bac", "human", "baseline", "tie")},
			refused: map[string]string{"tie": "model is"}},
		{id: "E1", says: "the winner flips between two reports", models: map[string]string{"6e36f4fa": llama},
			table: []string{
				value("6e36f4fa", "human", 1632.55, "model", llama),
				value("6e36f4fa", "agent", 1607.86, "model", llama),
				value("6e36f4fa", "human", 2414, "model", older),
				value("6e36f4fa", "agent", 2784, "model", older), verdict("6e36f4fa", "agent", "human", "win"),
				verdict("6e36f4fa", "agent", "human", "loss")},
			refused: map[string]string{"win": "no verdict", "loss": "no verdict"},
			told:    []string{"another methodology"}},
		{id: "E2", says: "5,651 and 3,424 for one commit",
			models: map[string]string{"9badee53": "meta-llama/Llama-3.2-1B-Instruct"}, table: []string{
				value("9badee53", "human", 5651.30, "model", "meta-llama/Llama-3.2-1B-Instruct"),
				value("9badee53", "human", 3424, "model", "meta-llama/Llama-3.2-1B")},
			states: map[string]string{"9badee53/human": "measured"},
			told:   []string{"measured with meta-llama/Llama-3.2-1B, and"}},
		{id: "E4", says: "baselines of one commit that differ",
			table: []string{value("22d33bac", "baseline", 3026), value("22d33bac", "baseline", 3098),
				value("2a052011", "baseline", 6623), value("2a052011", "baseline", 1524.64), claim("baseline", 2)},
			states:  map[string]string{"22d33bac/baseline": "conflict", "2a052011/baseline": "conflict"},
			refused: map[string]string{"baseline": "2 is typed, and the records give 0"},
			told:    []string{"[3026 3098] tok/s"}},
		{id: "F1", says: "the image of the human, as the baseline",
			table: []string{value("22d33bac", "baseline", 3098, "installed", "22d33bac"),
				value("22d33bac", "human", 3000, "installed", "22d33bac")},
			states: map[string]string{"22d33bac/baseline": "excluded", "22d33bac/human": "measured"},
			told:   []string{"it ran 22d33bac, and " + parent + " was to be measured"}},
		{id: "F2", says: "the human is 7.2 times slower than the baseline", table: []string{
			value("015069b0", "baseline", 1428, "runner", "docker_smoke"),
			value("015069b0", "human", 198.3, "runner", "separate_docker"),
			verdict("015069b0", "human", "baseline", "loss")},
			refused: map[string]string{"loss": `runner is "separate_docker" against "docker_smoke"`}},
		{id: "F3", says: "-55.5 % across two models", table: []string{
			value("83450458", "baseline", 7443.9, "model", small), value("83450458", "agent", 3314.11, "model", llama),
			verdict("83450458", "agent", "baseline", "loss")},
			refused: map[string]string{"loss": `model is "` + llama + `" against "` + small + `"`}},
		{id: "F4", says: "the speed of 125 million parameters beside the name of 70 thousand million",
			models: map[string]string{"b6d10354": "meta-llama/Llama-2-70b-hf"},
			table:  []string{value("b6d10354", "baseline", 5213, "model", small)},
			states: map[string]string{"b6d10354/baseline": "excluded"}, told: []string{"measured with " + small}},
		{id: "F7", says: "44 usable, of two metrics that cannot be compared", table: join(whole("a", 3), []string{
			`{"commit":"b0000000","side":"human","metric":"tpot_mean","unit":"ms","value":9.5}`,
			value("b0000000", "agent", 400), claim("complete", 4), verdict("b0000000", "agent", "human", "win")}),
			refused: map[string]string{"complete": "4 is typed, and the records give 3",
				"win": `metric is "output_token_throughput" against "tpot_mean"`}},
		{id: "G3", says: "41 of 45 baselines, of which 2 have metrics",
			table: join(declared("a", 43), []string{value("b0000000", "baseline", 1), value("b0000001", "baseline", 2),
				`{"claim":"baseline","count":41,"of":45,"percent":91}`}),
			refused: map[string]string{"baseline": "41 is typed, and the records give 2"},
			counts:  map[string]int{"baseline": 2, "baseline not_run": 43}},
		{id: "G4", says: "0 complete, and 8 complete, on one date",
			table:   join(whole("a", 4), []string{claim("complete", 0), claim("complete", 8)}),
			refused: map[string]string{"complete": "the records give 4"}, counts: map[string]int{"complete": 4}},
		{id: "H1", says: "a model that is not supported, of a log that says aimv2", table: []string{
			status("e7523c2e", "baseline", "failed", "cause", "model not in baseline vLLM"),
			status("9a3b8832", "baseline", "failed", "cause", "aimv2_duplicate", "evidence", aimv2),
			`{"commit":"9a3b8832","fixable":false}`},
			refused: map[string]string{"record": "attempts with a fix"},
			told: []string{`undiagnosed: no line of a log shows "model not in baseline vLLM"`,
				"aimv2_duplicate: ValueError"}},
		{id: "H3", says: "not installed, in an image that exists",
			table: []string{status("8aa1485f", "baseline", "failed", "cause", "vLLM not installed")},
			told:  []string{`undiagnosed: no line of a log shows "vLLM not installed"`}},
		{id: "H5", says: "five causes of one failure", table: []string{
			status("2f192835", "baseline", "failed", "cause", "wheel not found"),
			status("2f192835", "baseline", "failed", "cause", "NumPy 1.x"),
			status("2f192835", "baseline", "failed", "cause", "NumPy 2.x incompatibility"),
			status("2f192835", "baseline", "failed", "cause", "vLLM 0.4.0 too old"),
			status("2f192835", "baseline", "failed", "cause", "V1 engine incompatibility")},
			states: map[string]string{"2f192835/baseline": "failed"},
			told: []string{`no line of a log shows "NumPy 1.x"`,
				`no line of a log shows "V1 engine incompatibility"`}, counts: map[string]int{"baseline failed": 1}},
		{id: "H7", says: "stuck, after the time that it takes",
			table: []string{status("99abb8b6", "baseline", "build_failed", "cause", "build stuck")},
			told:  []string{`undiagnosed: no line of a log shows "build stuck"`}},
		{id: "H17", says: "it ran and printed nothing that can be read", table: []string{
			status("35fad35a", "baseline", "failed", "cause", "no parseable output"),
			`{"commit":"8aa1485f","side":"baseline","metric":"output_token_throughput","unit":"tok/s","value":null}`,
			claim("baseline", 2)},
			refused: map[string]string{"baseline": "2 is typed, and the records give 0"},
			states:  map[string]string{"8aa1485f/baseline": "no_value"}, told: []string{"undiagnosed"}},
		{id: "I8", says: "unlikely to be mended, above the numbers of what was mended",
			table: []string{value("83450458", "baseline", 7443.9), `{"commit":"83450458","fixable":false}`,
				`{"commit":"aea94362","side":"baseline","fixable":false}`},
			refused: map[string]string{"record": "attempts with a fix"},
			states:  map[string]string{"83450458/baseline": "measured"}},
		{id: "K1", says: "24, 20, 44, 22, 36, 17, 2, 4 and 49 usable",
			table:   join(whole("a", 4), declared("b", 92), claims("complete", 24, 20, 44, 22, 36, 17, 2, 4, 49)),
			refused: map[string]string{"complete": "the records give 4"},
			counts:  map[string]int{"complete": 4, "commits": 96}, stands: 1},
		{id: "K2", says: "24 complete three-way comparisons, of which 13 have a human and an agent",
			table:   join(pairs("a", 13), declared("b", 11), claims("complete", 24)),
			refused: map[string]string{"complete": "24 is typed, and the records give 0"},
			counts:  map[string]int{"complete": 0, "human and agent only": 13}},
	}
}

func claims(name string, counts ...int) (lines []string) {
	for _, n := range counts {
		lines = append(lines, claim(name, n))
	}
	return lines
}

func partition(source string, counts ...int) (lines []string) {
	for i, n := range counts {
		lines = append(lines, claim(fmt.Sprintf("category %d", i+1), n, "source", source, "partition", "summary"))
	}
	return lines
}

// TestContradictionsCannotBeStated imports each statement. It is refused with its reason, or what is computed says
// something else.
func TestContradictionsCannotBeStated(t *testing.T) {
	all := contradictions()
	if len(all) != 40 {
		t.Fatalf("%d contradictions, want 40", len(all))
	}
	for _, c := range all {
		t.Run(c.id, func(t *testing.T) {
			got, text := c.state(t)
			refused := map[string]string{}
			claims := 0
			for _, line := range c.table {
				if strings.Contains(line, `"claim"`) {
					claims++
				}
			}
			for _, r := range got.Refused {
				name := r.Line.Claim + r.Line.Verdict
				if name == "" {
					name = "record"
				}
				refused[name] += r.String() + "\n"
				if r.Line.Claim != "" && r.Line.Count != nil {
					claims--
				}
			}
			for name, why := range c.refused {
				if !strings.Contains(refused[name], why) {
					t.Errorf("%s: refusals of %s are %q, want %q", c.says, name, refused[name], why)
				}
			}
			if claims > c.stands {
				t.Errorf("%s: %d claims stand, at most %d may", c.says, claims, c.stands)
			}
			states := map[string]string{}
			for _, s := range got.States {
				states[s.Commit+"/"+s.Variant] = s.State
			}
			for at, want := range c.states {
				if states[at] != want {
					t.Errorf("%s: %s is %q, want %q", c.says, at, states[at], want)
				}
			}
			for name, want := range c.counts {
				if n, ok := got.Counts[name]; !ok || n != want {
					t.Errorf("%s: %d %s, want %d", c.says, n, name, want)
				}
			}
			for _, want := range c.told {
				if !strings.Contains(text, want) {
					t.Errorf("%s: the report lacks %q:\n%s", c.says, want, text)
				}
			}
			if len(c.refused)+len(c.states)+len(c.counts)+len(c.told) == 0 {
				t.Error("nothing is expected: this row checks nothing")
			}
		})
	}
}

// state imports the table of a contradiction and renders the report on it, as JSON and as readable text.
func (c *contradiction) state(t *testing.T) (got document.Recorded, text string) {
	t.Helper()
	rows, problems, err := dataset.Read("table.jsonl", []byte(strings.Join(c.table, "\n")))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	lines, problems := dataset.Results(rows)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	written, err := recorded.Write(lines)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err = recorded.Read(written); err != nil {
		t.Fatal(err)
	}
	var commits []recorded.Commit
	known := map[string]bool{"": true}
	for _, l := range lines {
		if !known[l.Commit] {
			known[l.Commit] = true
			commits = append(commits, recorded.Commit{Name: l.Commit, Rev: l.Commit, Parent: parent,
				Model: c.models[l.Commit]})
		}
	}
	doc := document.Document{Recorded: recorded.Keep(commits, lines, units.Convert)}
	files, err := Render(doc, "json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Recorded document.Recorded }
	if err := json.Unmarshal(files["report.json"], &document); err != nil {
		t.Fatal(err)
	}
	got = document.Recorded
	states, available := 0, 0
	for _, n := range got.ByState {
		states += n.Count
	}
	for _, n := range got.Availability {
		available += n.Count
	}
	if states != got.Universe || available != len(commits) {
		t.Errorf("%d states of %d, and %d commits of %d: the sums are wrong", states, got.Universe, available,
			len(commits))
	}
	for _, e := range got.Records {
		text += e.Why + "\n" + e.Diagnosis + "\n"
	}
	for _, s := range got.States {
		text += s.Reason + "\n"
	}
	return got, text
}

// TestRecordedCampaign imports the results that the five reports are about. They give one set of counts, and it sums.
func TestRecordedCampaign(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "examples", "campaigns", "recorded.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := recorded.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	var commits []recorded.Commit
	known := map[string]bool{}
	for _, l := range lines {
		if !known[l.Commit] {
			known[l.Commit] = true
			commits = append(commits, recorded.Commit{Name: l.Commit})
		}
	}
	b := recorded.Keep(commits, lines, units.Convert)
	sums := map[string]int{}
	for _, c := range b.ByState() {
		sums["states"] += c.Count
	}
	for _, c := range b.Availability() {
		sums["commits"] += c.Count
	}
	for _, e := range b.Entries {
		if e.Counts && len(e.Flags) > 0 {
			t.Errorf("%s %s counts, though it is flagged: %q", e.Commit, e.Metric, e.Flags)
		}
	}
	counts := b.Counts()
	if sums["states"] != len(b.States) || sums["commits"] != len(commits) || counts["records"] != len(lines) ||
		counts["win"]+counts["loss"]+counts["tie"] != 0 {
		t.Errorf("the counts do not sum: %v, %d states, %d commits, %d lines, %v", sums, len(b.States), len(commits),
			len(lines), counts)
	}
	// 24, 20, 44, 22, 36, 17, 2, 4 and 49 were published as the number of usable commits.
	want := map[string]int{"records": 498, "complete": 26, "baseline": 36, "human": 46, "claude_code": 43}
	for name, n := range want {
		if counts[name] != n {
			t.Errorf("%d %s, want %d", counts[name], name, n)
		}
	}
	for _, typed := range []int{24, 20, 44, 22, 36, 17, 2, 4, 49} {
		stated := recorded.Keep(commits, append(lines[:len(lines):len(lines)],
			recorded.Line{Claim: "complete", Count: &typed}), units.Convert)
		if len(stated.Refused) != 1 {
			t.Errorf("%d complete commits stand beside the records", typed)
		}
	}
}
