package cache_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestExplain(t *testing.T) {
	long := strings.Repeat("very long ", 20)
	key1, key2 := cache.Describe("1").Key().String(), cache.Describe("2").Key().String()
	line := func(label string, values ...string) cache.Line { return cache.Line{Label: label, Values: values} }
	type lines = []cache.Line
	for _, story := range []struct {
		name     string
		old, new lines
		want     string
	}{
		{"nothing", lines{line("rev", "a")}, lines{line("rev", "a")}, ""},
		{"one value", lines{line("commit.rev", "a1b2")}, lines{line("commit.rev", "c3d4")},
			`commit.rev changed from "a1b2" to "c3d4"`},
		{"a value without a name of its own", lines{line("limits", "0", "0", "false")},
			lines{line("limits", "8", "0", "true")},
			`cpus changed from "0" to "8", quiet changed from "false" to "true"`},
		{"ends of other nodes",
			lines{line(cache.After, "trial", key1, "node_done"), line(cache.After, "trial", "", "?")},
			lines{line(cache.After, "trial", key2, "node_done"), line(cache.After, "trial", "", "blocked")},
			"the end or the result of one trial changed"},
		{"one of many variables", lines{line("env", "A", "1"), line("env", "B", "2"), line("env", "C", "3")},
			lines{line("env", "A", "1"), line("env", "B", "4"), line("env", "C", "3")},
			`env "B" changed from "2" to "4"`},
		{"added", lines{}, lines{line("env", "A", "1")}, `env "A" "1" is new`},
		{"removed", lines{line("flag")}, lines{}, `flag is gone`},
		{"renamed", lines{line("env", "A", "1")}, lines{line("env", "B", "1")},
			`env changed from "A" "1" to "B" "1"`},
		{"one more value", lines{line("gpus", "1")}, lines{line("gpus", "1", "80GiB")},
			`gpus "1" changed from nothing to "80GiB"`},
		{"another order", lines{line("run", "a"), line("run", "b")}, lines{line("run", "b"), line("run", "a")},
			`the order of run and other lines changed`},
		{"repeated", lines{line("run", "a"), line("run", "a")}, lines{line("run", "a")}, `run "a" is gone`},
		{"digests are short", lines{line("input", "wheel", key1)}, lines{line("input", "wheel", key2)},
			`input "wheel" changed from "` + key1[:12] + `" to "` + key2[:12] + `"`},
		{"long values are short", lines{line("command", "x")}, lines{line("command", long)},
			`command changed from "x" to "` + long[:48] + `…"`},
		{"long values that differ late", lines{line("command", "sh", long+"old"+long)},
			lines{line("command", "sh", long+"newer")},
			`command "sh" changed from "… long very long oldvery long very long very l…" to "… long very long newer"`},
		{"a long list", lines{line("commits", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")},
			lines{line("commits", "a", "d", "k")},
			`commits changed from "b" "c" "e" "f" "g" "h" and 2 more to "k"`},
		{"a long list in another order", lines{line("run", "a", "b", "c", "d", "e", "f", "g", "h")},
			lines{line("run", "h", "b", "c", "d", "e", "f", "g", "a")},
			`run changed from "a" "b" "c" "d" "e" "f" and 2 more to "h" "b" "c" "d" "e" "f" and 2 more`},
		{"two", lines{line("a", "1"), line("b", "1")}, lines{line("a", "2"), line("b", "2")},
			`a changed from "1" to "2", and b changed from "1" to "2"`},
		{"five", lines{line("a", "1"), line("b", "1"), line("c"), line("d")},
			lines{line("a", "2"), line("b", "2"), line("e")},
			`a changed from "1" to "2", b changed from "1" to "2", and 3 more changed`},
	} {
		if got := cache.Explain(describe(story.old).Text(), describe(story.new).Text()); got != story.want {
			t.Errorf("%s: %s, want %s", story.name, got, story.want)
		}
	}
	if got := cache.Explain("benchgraph key 0\n", describe(nil).Text()); !strings.Contains(got, "another version") {
		t.Errorf("another version: %s", got)
	}
}

// TestDiffIsComplete applies a diff to the old lines, and must get the new ones in any order.
func TestDiffIsComplete(t *testing.T) {
	count := func(lines []cache.Line) map[string]int {
		counts := map[string]int{}
		for _, l := range lines {
			counts[describe([]cache.Line{l}).Text()]++
		}
		return counts
	}
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawLines(t, "old"), drawLines(t, "new")
		counts := count(old)
		changes := cache.Diff(describe(old).Text(), describe(new).Text())
		for _, c := range changes {
			if c.Op == cache.Changed || c.Op == cache.Removed {
				counts[describe([]cache.Line{{Label: c.Label, Values: c.Old}}).Text()]--
			}
			if c.Op == cache.Changed || c.Op == cache.Added {
				counts[describe([]cache.Line{{Label: c.Label, Values: c.New}}).Text()]++
			}
			if c.String() == "" {
				t.Fatalf("%+v says nothing", c)
			}
		}
		for line, n := range count(new) {
			if counts[line] != n {
				t.Fatalf("%q: %d times, want %d; changes %+v", line, counts[line], n, changes)
			}
			delete(counts, line)
		}
		for line, n := range counts {
			if n != 0 {
				t.Fatalf("%q is left %d times; changes %+v", line, n, changes)
			}
		}
		if (len(changes) == 0) != equalLines(old, new) {
			t.Fatalf("changes %+v between %q and %q", changes, old, new)
		}
	})
}

// Texts of keys come from stored results, which anybody may have made.
func FuzzDiff(f *testing.F) {
	one := cache.Describe("a").Text()
	f.Add(one+"env \"A\" \"1\"\nenv \"B\" \"2\"\n", one+"env \"B\" \"3\"\nenv \"A\" \"1\"\n")
	f.Add(one, "")
	f.Fuzz(func(t *testing.T, old, new string) {
		fuzzing.Frugal(t, len(old)+len(new), func() {
			there, back := cache.Diff(old, new), cache.Diff(new, old)
			if (len(there) == 0) != (len(back) == 0) {
				t.Fatalf("%v, and the other way round %v", there, back)
			}
			for _, c := range there {
				if text := c.String(); strings.ContainsAny(text, "\x00\x1b\n\r") {
					t.Fatalf("%q", text)
				}
			}
		})
	})
}

// Texts of many different lines are paired without a look at every pair.
func BenchmarkDiffOfLongTexts(b *testing.B) {
	for _, lines := range []int{1_000, 2_000, 4_000, 8_000} {
		text := func(value string) string {
			var t strings.Builder
			t.WriteString(cache.Describe("a").Text())
			for i := range lines {
				fmt.Fprintf(&t, "env \"N%d\" %q\n", i, value)
			}
			return t.String()
		}
		old, new := text("1"), text("2")
		b.Run(fmt.Sprint(lines), func(b *testing.B) {
			for b.Loop() {
				cache.Diff(old, new)
			}
		})
	}
}
