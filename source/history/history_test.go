package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/hclspec"
)

func TestAnswersAreKeptByTheCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	q := hclspec.Question{Repo: "r", About: hclspec.Content, Commit: strings.Repeat("a", 40), Path: "setup.py"}
	other := hclspec.Question{Repo: "r", About: hclspec.Exists, Commit: strings.Repeat("b", 40), Path: "x"}
	c := Open(path)
	for range 2 {
		if _, known := c.Ask(q); known {
			t.Fatal("an answer out of nowhere")
		}
	}
	c.Ask(other)
	if diff := cmp.Diff([]hclspec.Question{q, other}, c.Wanted()); diff != "" {
		t.Fatal(diff)
	}
	if again := c.Wanted(); len(again) > 0 {
		t.Errorf("wanted again: %v", again)
	}
	want := hclspec.Answer{Text: []byte("version\xff")}
	c.Keep(q, want)
	c.Pass(other, hclspec.Answer{Err: "not now"})
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	c = Open(path)
	elsewhere := q
	elsewhere.Repo = "another"
	if a, known := c.Ask(elsewhere); !known || cmp.Diff(want, a) != "" {
		t.Errorf("got %v, %v", a, known)
	}
	if _, known := c.Ask(other); known {
		t.Error("what was good for one process was kept")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "setup.py", "setup.px", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, known := Open(path).Ask(hclspec.Question{About: hclspec.Content, Commit: q.Commit, Path: "setup.px"}); known {
		t.Error("a damaged file answered")
	}
}
