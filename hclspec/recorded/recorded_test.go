package recorded

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// history draws random records of a few commits by several runners, with many mistakes.
func history(t *rapid.T) ([]Commit, []Line) {
	var commits []Commit
	for i := range rapid.IntRange(1, 4).Draw(t, "commits") {
		commits = append(commits, Commit{Name: fmt.Sprintf("commit%d", i), Rev: strings.Repeat(fmt.Sprint(i), 40),
			Parent: strings.Repeat("f", 40), Model: "model"})
	}
	pick := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "pick") }
	var lines []Line
	for range rapid.IntRange(0, 30).Draw(t, "records") {
		l := Line{Commit: pick("commit0", "commit1", "commit2", "other"), Side: pick("baseline", "human", "agent"),
			Runner: pick("", "one"), Source: pick("a", "b", "c")}
		if l.Side == "agent" {
			l.Agent = pick("x", "y")
		}
		if pick("value", "status") == "value" {
			l.Metric, l.Unit, l.Model = pick("ttft_mean", "throughput"), pick("", "ms", "ms"),
				pick("", "model", "model", "another")
			if pick("some", "some", "none") == "some" {
				v := float64(rapid.IntRange(1, 3).Draw(t, "value"))
				l.Value = &v
			}
			if pick("", "", "flag") != "" {
				l.Flags = []string{"log artefact"}
			}
			l.Installed = pick("", "", strings.Repeat("f", 40))
		} else {
			l.Status, l.Cause, l.Evidence = pick(Statuses()...), pick("", "cause"), pick("", "line")
		}
		l.Supersedes = pick("", "", "", "a")
		lines = append(lines, l)
	}
	return commits, lines
}

// TestInvariants checks invariants of recorded results over random histories. The numbers are those of the invariants
// in docs/statistics.md.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commits, lines := history(t)
		b := Keep(commits, lines, units.Convert)
		counts := b.Counts()

		// I2, I3: one state each, and the states partition the universe.
		seen := map[string]bool{}
		for _, s := range b.States {
			if at := s.Commit + "/" + s.Variant; seen[at] {
				t.Fatalf("%s has two states", at)
			} else {
				seen[at] = true
			}
		}
		if len(b.States) != len(commits)*len(b.Variants) || sum(b.ByState()) != len(b.States) ||
			sum(b.Availability()) != len(commits) {
			t.Fatalf("%d states of %d commits in %d variants; %v; %v", len(b.States), len(commits), len(b.Variants),
				b.ByState(), b.Availability())
		}
		// I1: the counts do not depend on the order of the records, and a typed count is accepted only if it is the
		// computed one.
		shuffled := slices.Clone(lines)
		random := rand.New(rand.NewPCG(uint64(len(lines)), 1))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		other := Keep(commits, shuffled, units.Convert)
		if diff := cmp.Diff(b.States, other.States); diff != "" {
			t.Fatalf("another order of records gives other states:\n%s", diff)
		}
		name := rapid.SampledFrom(names(counts)).Draw(t, "claim")
		n := counts[name] + rapid.IntRange(-1, 1).Draw(t, "off")
		claimed := Keep(commits, append(slices.Clone(lines), Line{Claim: name, Count: &n}), units.Convert)
		if refused := len(claimed.Refused) > len(b.Refused); refused != (n != counts[name]) {
			t.Fatalf("%s is %d, and the claim %d: refused %v", name, counts[name], n, refused)
		}
		for _, e := range b.Entries {
			checkEntry(t, &e)
		}
		for _, s := range b.States {
			checkState(t, b, s)
		}
		// I5, I11: no statement makes a winner.
		for _, v := range b.Variants {
			l := Line{Commit: commits[0].Name, Side: v, Against: "baseline", Verdict: "win"}
			if b.objection(l, counts) == "" {
				t.Fatalf("%s wins by a statement", v)
			}
		}
		// I8: whether a failure can be mended is no statement of a study.
		yes := true
		if b.objection(Line{Commit: commits[0].Name, Fixable: &yes}, counts) == "" {
			t.Fatal("a statement makes something fixable")
		}
		// I15: a percentage names both sets.
		percent := 50.0
		if b.objection(Line{Claim: name, Percent: &percent}, counts) == "" {
			t.Fatal("a percentage of nothing stands")
		}
	})
}

func checkEntry(t *rapid.T, e *Entry) {
	switch {
	case e.Counts != (e.Why == ""):
		t.Fatalf("counts %v, because %q", e.Counts, e.Why)
	case e.Counts && (e.Value == nil || e.Unit == "" || len(e.Flags) > 0): // I4, I6, I11
		t.Fatalf("it counts: %+v", e)
	case e.Counts && e.Model == "another": // I10
		t.Fatalf("a substituted model counts: %+v", e)
	case e.Counts && e.Side == "human" && e.Installed != "": // I14: the parent ran, not the commit
		t.Fatalf("another artefact counts: %+v", e)
	case e.Cause != "" && e.Evidence == "" && !strings.HasPrefix(e.Diagnosis, "undiagnosed"): // I7
		t.Fatalf("a cause without evidence stands: %+v", e)
	}
}

func checkState(t *rapid.T, b *Book, s State) {
	counts, own := 0, []Entry{}
	for _, e := range b.Entries {
		if e.Commit == s.Commit && e.Variant() == s.Variant {
			own = append(own, e)
			if e.Counts {
				counts++
			}
		}
	}
	recordedAs := func(status string) bool {
		return slices.ContainsFunc(own, func(e Entry) bool { return e.Status == status })
	}
	switch {
	case s.State == Measured && counts == 0:
		t.Fatalf("%+v is measured without a value", s)
	case len(own) == 0 && s.State != NotStated:
		t.Fatalf("%+v has no record", s)
	case slices.Contains(Statuses(), s.State) && !recordedAs(s.State): // I12, I17: no status becomes another
		t.Fatalf("%+v was not recorded so", s)
	case s.State == "failed" && s.Variant != "baseline" && slices.Contains(b.Variants, "baseline"): // I13
		for _, base := range b.States {
			if base.Commit == s.Commit && base.Variant == "baseline" && base.State != Measured {
				t.Fatalf("%+v, and its baseline is %s", s, base.State)
			}
		}
	}
}

func sum(counts []Count) (n int) {
	for _, c := range counts {
		n += c.Count
	}
	return n
}

// A record that supersedes another is an explicit statement: the history stays.
func TestSuperseding(t *testing.T) {
	one, two := 1.0, 2.0
	lines := []Line{
		{Commit: "c", Side: "human", Metric: "m", Unit: "ms", Value: &one, Source: "first"},
		{Commit: "c", Side: "human", Metric: "m", Unit: "ms", Value: &two, Source: "second", Supersedes: "first"},
	}
	b := Keep([]Commit{{Name: "c"}}, lines, units.Convert)
	if len(b.Entries) != 2 || b.States[0].State != Measured || b.Entries[0].Counts || !b.Entries[1].Counts {
		t.Errorf("%+v", b)
	}
	lines[1].Supersedes = ""
	if b = Keep([]Commit{{Name: "c"}}, lines, units.Convert); b.States[0].State != Conflict {
		t.Errorf("%+v", b.States)
	}
}

// FuzzRead reads hostile files of recorded results.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"commit":"c","side":"human","metric":"m","value":1,"unit":"ms"}` + "\n\n" +
		`{"claim":"complete","count":2,"of":3,"percent":5e300}`))
	f.Add([]byte(`{"commit":"c","side":"\u202e","status":"failed","cause":"x","flags":[""]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzing.Frugal(t, len(text), func() {
			lines, err := Read(text)
			if err != nil || len(lines) > 1000 {
				return
			}
			again, err := Write(lines)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Read(again); err != nil {
				t.Fatalf("%v in %s", err, again)
			}
			commits := []Commit{{Name: "c", Model: "m"}}
			b := Keep(commits, lines, units.Convert)
			if sum(b.ByState()) != len(b.States) || sum(b.Availability()) != 1 {
				t.Fatalf("%+v", b)
			}
			if _, err := json.Marshal(b); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// Two values of one measurement exclude each other, whatever their units.
func TestConflictsInTwoUnits(t *testing.T) {
	for _, test := range []struct {
		ms, s float64
		state string
	}{{100, 0.2, Conflict}, {100, 0.1, Measured}, {651.123456789012, 0.651123456789012, Measured}} {
		lines := []Line{
			{Commit: "c", Side: "human", Runner: "r", Metric: "ttft_mean", Unit: "ms", Value: &test.ms, Source: "one"},
			{Commit: "c", Side: "human", Runner: "r", Metric: "ttft_mean", Unit: "s", Value: &test.s, Source: "two"},
		}
		b := Keep([]Commit{{Name: "c"}}, lines, units.Convert)
		if b.States[0].State != test.state {
			t.Errorf("%v ms and %v s are %+v", test.ms, test.s, b.States)
		}
		for _, e := range b.Entries {
			if e.Counts != (test.state == Measured) {
				t.Errorf("%v %s counts: %v, %s", *e.Value, e.Unit, e.Counts, e.Why)
			}
		}
	}
}

// The index of commits finds the same commit as a comparison with each of them.
func TestCommitsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab]{0,2}|[ab]{6,9}`)
		var commits []Commit
		for range rapid.IntRange(0, 12).Draw(t, "commits") {
			commits = append(commits, Commit{Name: name.Draw(t, "name"), Rev: name.Draw(t, "rev")})
		}
		b, of := Keep(commits, nil, units.Convert), name.Draw(t, "of")
		want := slices.IndexFunc(commits, func(c Commit) bool {
			return of != "" && (c.Name == of || len(of) >= 7 && strings.HasPrefix(c.Rev, of))
		})
		got, ok := b.commit(of)
		if ok != (want >= 0) || ok && got != commits[want] {
			t.Fatalf("%q is %v, %v, want commit %d of %v", of, got, ok, want, commits)
		}
	})
}
