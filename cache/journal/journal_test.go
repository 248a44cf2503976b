package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func openJournal(t testing.TB, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// attempt returns an attempt at a node; with the class "", it succeeded.
func attempt(id, address, key string, class failure.Class, seconds int) Attempt {
	a := Attempt{ID: id, Run: "run", Address: address, Key: cache.Describe(key).Key(), Number: 1,
		Start:    time.Unix(1700000000, 0).UTC(),
		Duration: time.Duration(seconds) * time.Second, Devices: []string{"GPU-1"}}
	if class != "" {
		a.Failure = &failure.Failure{Class: class, Message: "failed as " + id}
	}
	return a
}

func record1(t testing.TB, j *Journal, attempts ...Attempt) {
	t.Helper()
	for _, a := range attempts {
		if err := j.Record(a); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailuresAreRemembered(t *testing.T) {
	for _, story := range []struct {
		name     string
		attempts []Attempt
		want     string // ID; empty: none
	}{
		{"none", nil, ""},
		{"a success", []Attempt{attempt("1", "a", "k", "", 1)}, ""},
		{"a permanent one", []Attempt{attempt("1", "a", "k", failure.Permanent, 1)}, "1"},
		{"a fixable one", []Attempt{attempt("1", "a", "k", failure.Fixable, 1)}, "1"},
		{"the last one", []Attempt{attempt("1", "a", "k", failure.Permanent, 1),
			attempt("2", "a", "k", failure.Invalid, 1)}, "2"},
		{"not a transient one", []Attempt{attempt("1", "a", "k", failure.Transient, 1)}, ""},
		{"not one of the machine", []Attempt{attempt("1", "a", "k", failure.Infra, 1)}, ""},
		{"a success ends it", []Attempt{attempt("1", "a", "k", failure.Permanent, 1),
			attempt("2", "a", "k", "", 1)}, ""},
		{"tried again, without an outcome", []Attempt{attempt("1", "a", "k", failure.Permanent, 1),
			attempt("2", "a", "k", failure.Transient, 1)}, ""},
		{"another key's success", []Attempt{attempt("1", "a", "k", failure.Permanent, 1),
			attempt("2", "a", "other", "", 1)},
			"1"},
		{"at another address", []Attempt{attempt("1", "b", "k", failure.Permanent, 1)}, "1"},
	} {
		path := filepath.Join(t.TempDir(), "journal")
		j := openJournal(t, path)
		record1(t, j, story.attempts...)
		for name, j := range map[string]*Journal{"at once": j, "read anew": openJournal(t, path)} {
			got, ok := j.Failure(cache.Describe("k").Key())
			if got.ID != story.want || ok != (story.want != "") {
				t.Errorf("%s, %s: %q, want %q", story.name, name, got.ID, story.want)
			}
		}
	}
}

func TestTheLastAttemptAtAKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	record1(t, j, attempt("1", "a", "k", failure.Permanent, 1), attempt("2", "a", "k", "", 1),
		attempt("3", "a", "other", failure.Transient, 1))
	for name, j := range map[string]*Journal{"at once": j, "read anew": openJournal(t, path)} {
		for _, story := range []struct{ address, key, want string }{
			{"a", "k", "2"}, {"a", "other", "3"}, {"b", "k", ""}, {"a", "none", ""},
		} {
			got, ok := j.Last(story.address, cache.Describe(story.key).Key())
			if got.ID != story.want || ok != (story.want != "") {
				t.Errorf("%s, %s of %s: %q, want %q", name, story.key, story.address, got.ID, story.want)
			}
		}
	}
}

func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	record1(t, j, attempt("1", "a", "k1", failure.Permanent, 1), attempt("2", "b", "k2", failure.Permanent, 1))
	if err := j.Forget(func(a Attempt) bool { return a.Address == "a" }); err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]*Journal{"at once": j, "read anew": openJournal(t, path)} {
		if _, ok := j.Failure(cache.Describe("k1").Key()); ok {
			t.Errorf("%s: still remembered", name)
		}
		if _, ok := j.Failure(cache.Describe("k2").Key()); !ok {
			t.Errorf("%s: too much was forgotten", name)
		}
		if len(j.Attempts("a")) != 1 {
			t.Errorf("%s: the attempt itself is gone", name)
		}
	}
	record1(t, j, attempt("3", "a", "k1", failure.Permanent, 1))
	if got, ok := j.Failure(cache.Describe("k1").Key()); !ok || got.ID != "3" {
		t.Errorf("a failure after that: %+v, %t", got, ok)
	}
}

func TestEstimate(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	if got, own := j.Estimate(`wheel.vllm["a"]`); got != 0 || own {
		t.Error("an estimate from nothing")
	}
	record1(t, j, attempt("1", `wheel.vllm["a"]`, "k", failure.Permanent, 1000),
		attempt("2", `wheel.vllm["b"]`, "k", "", 10),
		attempt("3", `wheel.vllm["b"]`, "k", "", 20), attempt("4", `wheel.other["b"]`, "k", "", 999))
	type estimate struct {
		took time.Duration
		own  bool
	}
	for address, want := range map[string]estimate{
		`wheel.vllm["b"]`: {15 * time.Second, true},  // the middle of an even number
		`wheel.vllm["a"]`: {15 * time.Second, false}, // it never succeeded: as its siblings
		`wheel.vllm["z"]`: {15 * time.Second, false},
		`wheel.other`:     {999 * time.Second, false},
	} {
		if took, own := j.Estimate(address); took != want.took || own != want.own {
			t.Errorf("%s: %v, its own: %t; want %v", address, took, own, want)
		}
	}
	for i := range 8 { // the old ones no longer count
		record1(t, j, attempt(fmt.Sprint("n", i), `wheel.vllm["b"]`, "k", "", 100+i))
	}
	if got, _ := j.Estimate(`wheel.vllm["b"]`); got != 103500*time.Millisecond {
		t.Errorf("the last eight: %v", got)
	}
}

func TestTwoProcessesWriteOneJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	a, b := openJournal(t, path), openJournal(t, path)
	var wg sync.WaitGroup
	for n, j := range []*Journal{a, b} {
		wg.Go(func() {
			for i := range 100 {
				if err := j.Record(attempt(fmt.Sprint(n, "-", i), fmt.Sprint("node", i), fmt.Sprint(n, i),
					failure.Permanent,
					1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(a.catchUp(), b.catchUp()); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*Journal{a, b, openJournal(t, path)} {
		if j.Damaged() != 0 || len(j.Attempts("node7")) != 2 {
			t.Errorf("%d damaged lines, %d attempts", j.Damaged(), len(j.Attempts("node7")))
		}
		for n := range 2 {
			if _, ok := j.Failure(cache.Describe(fmt.Sprint(n, 99)).Key()); !ok {
				t.Errorf("a failure of process %d is missing", n)
			}
		}
	}
}

func TestATornOrDamagedLineCostsOnlyItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	record1(t, j, attempt("1", "a", "k1", failure.Permanent, 1), attempt("2", "a", "k2", failure.Permanent, 1),
		attempt("3", "a", "k3", failure.Permanent, 1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	rapid.Check(t, func(rt *rapid.T) {
		victim := rapid.IntRange(0, 2).Draw(rt, "line")
		line := bytes.Clone(lines[victim])
		at := rapid.IntRange(0, len(line)-2).Draw(rt, "byte")
		if rapid.Bool().Draw(rt, "torn") {
			line = line[:at] // and what follows begins in the middle of a line, or after it
			if victim < 2 {
				line = append(line, '\n')
			}
		} else {
			line[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		}
		var text []byte
		for i := range 3 {
			if i == victim {
				text = append(text, line...)
			} else {
				text = append(text, lines[i]...)
			}
		}
		path := filepath.Join(t.TempDir(), "harmed")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			rt.Fatal(err)
		}
		j, err := Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer j.Close()
		if err := j.Record(attempt("4", "a", "k4", failure.Permanent, 1)); err != nil {
			rt.Fatal(err)
		}
		for i := range 4 {
			if _, ok := j.Failure(cache.Describe(fmt.Sprint("k", i+1)).Key()); ok == (i == victim) {
				rt.Fatalf("line %d was harmed; failure %d: %t", victim+1, i+1, ok)
			}
		}
	})
}

func TestAJournalDoesNotGrowForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, other := openJournal(t, path), openJournal(t, path)
	record1(t, j, attempt("old", "rare", "old", failure.Permanent, 1),
		attempt("gone", "rare", "gone", failure.Permanent, 1))
	if err := j.Forget(func(a Attempt) bool { return a.ID == "gone" }); err != nil {
		t.Fatal(err)
	}
	for i := range 2500 {
		record1(t, j, attempt(fmt.Sprintf("%04d", i), "busy", fmt.Sprint(i%3), "", i))
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 1300*300 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	record1(t, other, attempt("late", "busy", "late", failure.Permanent, 1)) // it has the file from before open
	if err := j.catchUp(); err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]*Journal{"the writer": j, "the other": other, "a reader": openJournal(t, path)} {
		attempts := j.Attempts("busy")
		if len(attempts) != 32 || attempts[31].ID != "late" || attempts[30].ID != "2499" || attempts[0].ID != "2469" {
			t.Errorf("%s: %d attempts", name, len(attempts))
		}
		for key, want := range map[string]bool{"old": true, "gone": false, "late": true} {
			if _, ok := j.Failure(cache.Describe(key).Key()); ok != want {
				t.Errorf("%s: failure %s is remembered: %t", name, key, ok)
			}
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	a := attempt("1", "a", "k", failure.Permanent, 1)
	a.Failure.Evidence = strings.Repeat("é\xff\n", 1<<20)
	record1(t, j, a)
	got, ok := openJournal(t, path).Failure(a.Key)
	if !ok || len(got.Failure.Evidence) > 3*longestText || !strings.HasPrefix(got.Failure.Evidence, "é") {
		t.Errorf("%d bytes of evidence, %t", len(got.Failure.Evidence), ok)
	}
	if len(a.Failure.Evidence) != 4<<20 {
		t.Error("the caller's failure was changed")
	}
}

func FuzzJournal(f *testing.F) {
	for _, r := range []record{{Attempt: &Attempt{ID: "1", Address: "a",
		Failure: &failure.Failure{Class: failure.Permanent}}},
		{Forget: []string{"1"}}, {}} {
		line, err := encodeRecord(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
		f.Add(append(line, line[:len(line)/2]...))
	}
	f.Add([]byte("00000000 \n\n\x00 {}\nffffffff"))
	mine := attempt("mine", "m", "mine", failure.Permanent, 1)
	line, err := encodeRecord(record{Attempt: &mine})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		j := &Journal{}
		j.reset(0)
		fuzzing.Frugal(t, len(text), func() { j.take(append(bytes.Clone(text), '\n')) })
		j.take(line)
		if _, ok := j.Failure(mine.Key); !ok || j.read != int64(len(text)+1+len(line)) {
			t.Fatalf("what was recorded after it is lost: %d bytes read", j.read)
		}
		if live := len(j.live()); live > j.kept+len(j.failures) || j.kept > j.lines {
			t.Fatalf("%d records are live, %d attempts kept of %d lines", live, j.kept, j.lines)
		}
	})
}

// TestPlainRecordsAreReadAsJSON compares the short way of reading a record with the long one.
func TestPlainRecordsAreReadAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune(`"\,{}:<`))))
		a := Attempt{
			ID: text.Draw(t, "id"), Run: text.Draw(t, "run"), Address: text.Draw(t, "address"),
			Number: rapid.Int().Draw(t, "number"),
			Start: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"),
				rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds")).UTC(),
			Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
		}
		if rapid.Bool().Draw(t, "failed") {
			a.Failure = &failure.Failure{Message: text.Draw(t, "message")}
		}
		line, err := encodeRecord(record{Attempt: &a})
		if err != nil {
			t.Fatal(err)
		}
		_, words, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		var want record
		if err := json.Unmarshal(words, &want); err != nil {
			t.Fatal(err)
		}
		got, plain := plainSuccess(string(words))
		if plain && (a.Failure != nil || !reflect.DeepEqual(got, *want.Attempt)) {
			t.Fatalf("%s\nwas read as %+v\ninstead of   %+v", words, got, *want.Attempt)
		}
		if simple := `task.t["a/b"]`; !plain && a.Failure == nil {
			a.ID, a.Run, a.Address = simple, simple, simple
			if line, _ = encodeRecord(record{Attempt: &a}); !bytes.Contains(line, []byte(simple[:6])) {
				t.Fatal("not written")
			}
			if _, ok := plainSuccess(string(line[9 : len(line)-1])); !ok {
				t.Fatalf("%s takes the long way", line)
			}
		}
	})
}

// BenchmarkOpen reads the attempts of ten thousand nodes.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "journal")
	var text []byte
	for i := range 10_000 {
		a := Attempt{ID: fmt.Sprintf("20260102T030405-%06d", i), Run: "20260102T030405",
			Address: fmt.Sprintf(`benchmark.serving["%d/human"]`, i),
			Key:     cache.Describe("benchmark " + fmt.Sprint(i)).Key(), Number: 1, Start: time.Unix(1700000000, 0),
			Duration: time.Minute}
		if i%10 == 0 {
			a.Failure = &failure.Failure{Class: failure.Permanent, Stage: "run", Evidence: "ValueError: no",
				Message: "the command ended with status 1"}
		}
		line, err := encodeRecord(record{Attempt: &a})
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, line...)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		j, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(j.Load(), j.Close()); err != nil {
			b.Fatal(err)
		}
	}
}
