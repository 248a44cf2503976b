package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

func comment(t *testing.T, doc document.Document) string {
	t.Helper()
	files, err := Render(doc, "github")
	if err != nil {
		t.Fatal(err)
	}
	return string(files["github.md"])
}

// GitHub refuses comments of more than 65,536 characters, however many candidates there are and however long their
// texts.
func TestACommentFitsIntoGitHub(t *testing.T) {
	doc := campaign()
	for i := range 3000 {
		for k, o := range []stats.Outcome{stats.Failed, stats.Tie, stats.Skipped} {
			doc.Comparisons = append(doc.Comparisons, stats.Comparison{Compare: "three_way", Benchmark: "serving",
				Commit:    "22d33bac",
				Candidate: fmt.Sprintf("22d33bac/v%d_%d", i, k), Against: "22d33bac/baseline",
				Metric: "output_token_throughput", Primary: true,
				Verdict: stats.Verdict{Outcome: o, Blocks: 7, Reason: strings.Repeat("é", 500),
					Caveats: []stats.Caveat{{Kind: stats.CaveatFix,
						Text: fmt.Sprint(i, strings.Repeat("x", 500))}}},
			})
			doc.Universe++
		}
	}
	text := comment(t, doc)
	if len(text) > 65_536 {
		t.Errorf("%d bytes", len(text))
	}
	if n := strings.Count(text, "<details>"); n != 3 || strings.Count(text, "</details>") != n {
		t.Errorf("%d details, %d ends of some", n, strings.Count(text, "</details>"))
	}
	if strings.Count(text, "which the whole report has") != 3 {
		t.Error("no line says what is left out")
	}
	if first, _, _ := strings.Cut(text, "\n"); first != "<!-- benchgraph three_way -->" {
		t.Errorf("the marker is %q", first)
	}
	if loss, failed := strings.Index(text, "| **loss**"), strings.Index(text, "| **failed**"); loss < 0 ||
		failed >= 0 && failed < loss {
		t.Error("a loss stands below a failure")
	}
}

// Each row gives the reason for its outcome, also a row decided by identical artefacts.
func TestACommentSaysWhy(t *testing.T) {
	doc := campaign()
	doc.Universe++
	doc.Comparisons = append(doc.Comparisons, stats.Comparison{Compare: "three_way", Benchmark: "serving",
		Commit: "22d33bac", Candidate: "22d33bac/same", Against: "22d33bac/baseline", Primary: true,
		Metric: "output_token_throughput", Verdict: stats.Verdict{Outcome: stats.Tie, Reason: "the same bytes",
			Caveats: []stats.Caveat{{Kind: stats.CaveatIdentical, Text: "the same bytes"}}}})
	text := comment(t, doc)
	if !strings.Contains(text, "| `the same bytes` |") {
		t.Errorf("the tie has no reason:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && strings.HasSuffix(line, "|  |\n") {
			t.Errorf("an empty cell: %s", line)
		}
	}
}

// A comment for a pull request tells benchmarks with equal metrics apart, and the push that it is for.
func TestACommentNamesBenchmarksAndRevisions(t *testing.T) {
	doc := campaign()
	if text := comment(t, doc); strings.Contains(text, "Benchmark |") || strings.Contains(text, " is `") {
		t.Errorf("a campaign with one benchmark and many commits:\n%s", text)
	}
	other := doc.Comparisons[0]
	other.Benchmark = "offline"
	doc.Comparisons, doc.Commits = append(doc.Comparisons, other), doc.Commits[:1]
	doc.Universe++
	text := comment(t, doc)
	for _, part := range []string{"| Commit | Benchmark | Metric |",
		"\n| --- | --- | --- | --- | --- | ---: | ---: | --- |\n",
		" | `offline` | `", "`22d33bac` is `22d33baca2c0`, its parent `b0e96aaebbfb`"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q:\n%s", part, text)
		}
	}
}

// A comment notifies nobody whom a candidate names, and shows no markup of theirs.
func TestACommentNotifiesNobody(t *testing.T) {
	const hostile = "@everyone <img src=x> --> </details> [x](http://y) `@code`"
	doc := campaign()
	doc.Title = hostile
	for i := range doc.Commits {
		doc.Commits[i].Title = hostile
	}
	for i := range doc.Comparisons {
		doc.Comparisons[i].Reason = hostile
		doc.Comparisons[i].Caveats = []stats.Caveat{{Kind: stats.CaveatFix, Text: hostile}}
	}
	inCode := func(line string, at int) bool {
		open, n := 0, 0
		for i := 0; i < at; i++ {
			if line[i] != '`' {
				continue
			}
			n = 1
			for i+n < len(line) && line[i+n] == '`' {
				n++
			}
			switch open {
			case 0:
				open = n
			case n:
				open = 0
			}
			i += n - 1
		}
		return open > 0
	}
	for line := range strings.Lines(comment(t, doc)) {
		for at := 0; ; at++ {
			next := strings.Index(line[at:], "@everyone")
			if next < 0 {
				break
			}
			if at += next; !inCode(line, at) {
				t.Errorf("outside of code: %s", line)
			}
		}
	}
}
