package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/stats"
)

func pageOf(t *testing.T, doc Document) string {
	t.Helper()
	files, err := Render(doc, "html")
	if err != nil {
		t.Fatal(err)
	}
	return string(files["report.html"])
}

// The policy of the page names its own style and script by their hashes, and nothing else may run or be loaded.
func TestPageIsSelfContained(t *testing.T) {
	page := pageOf(t, campaign())
	for tag, source := range map[string]string{"style": "style-src", "script": "script-src"} {
		inside := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		if len(inside) != 1 {
			t.Fatalf("%d elements %s, want 1", len(inside), tag)
		}
		if want := fmt.Sprintf("%s &#39;%s&#39;", source, strings.ReplaceAll(digest(inside[0][1]), "+",
			"&#43;")); !strings.Contains(page, want) {
			t.Errorf("the policy has no %s", want)
		}
	}
	for _, forbidden := range []string{" style=", " onclick=", "<link", "<img", "src=", "@import", "url("} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	if len(pageScript) > 10_000 {
		t.Errorf("the script has %d bytes, more than 10,000", len(pageScript))
	}
}

// A reader of screens takes an img for one thing, and finds no links in it.
func TestPicturesWithLinksAreGroups(t *testing.T) {
	linked := 0
	for _, picture := range regexp.MustCompile(`(?s)<svg[^>]* role="([a-z]+)".*?</svg>`).FindAllStringSubmatch(pageOf(t,
		campaign()), -1) {
		links := strings.Contains(picture[0], "<a ")
		if links != (picture[1] == "group") {
			t.Errorf("a picture with links (%t) has the role %s", links, picture[1])
		}
		if links {
			linked++
		}
	}
	if linked == 0 {
		t.Error("no picture has links: this test looks in the wrong place")
	}
}

// The page is the export: report.json is in it, whole.
// A label of the forest plot is whole, and ends before the plot begins.
func TestLabelsOfTheForestAreWhole(t *testing.T) {
	row := stats.Comparison{Candidate: "0ec82edd/variant_with_long_name", Metric: "output_token_throughput",
		Verdict: stats.Verdict{Outcome: stats.Win, Effect: 0.05, Low: 0.04, High: 0.06}}
	label := sign(row.Outcome) + " " + row.Candidate + " " + row.Metric
	picture := string(forest([]stats.Comparison{row}, []string{"row"}))
	if !strings.Contains(picture, ">"+label+"</text>") {
		t.Errorf("no label %q in %s", label, picture)
	}
	grid := regexp.MustCompile(`<line x1="([0-9.]+)"[^>]* class="grid"`).FindStringSubmatch(picture)
	if left, err := strconv.ParseFloat(grid[1], 64); err != nil || left < 7*float64(len([]rune(label))) {
		t.Errorf("the plot begins at %s, below a label of %d characters", grid[1], len([]rune(label)))
	}
}

// The page has the sections of report.md.
func TestPageHoldsPatchesAgainstTheCommit(t *testing.T) {
	doc := campaign()
	page := pageOf(t, doc)
	_, rest, found := strings.Cut(page, "<h3>Patches against the commit itself</h3>")
	if !found || !strings.Contains(rest, `<tr id="pair-1" data-outcome="win">`) ||
		!strings.Contains(rest, "human<br><small>against claude</small>") {
		t.Error("the pair is not there")
	}
	doc.Pairs = nil
	if strings.Contains(pageOf(t, doc), "against the commit itself") {
		t.Error("a section without rows")
	}
}

func TestPageHoldsTheDocument(t *testing.T) {
	doc := campaign()
	page := pageOf(t, doc)
	_, rest, _ := strings.Cut(page, `<script type="application/json" id="report">`)
	embedded, _, _ := strings.Cut(rest, "</script>")
	var got, want any
	if err := json.Unmarshal([]byte(embedded), &got); err != nil {
		t.Fatal(err)
	}
	files, err := Render(doc, "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(files["report.json"], &want); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("the embedded document is not report.json")
	}
}

// Text of commits, logs and patches stays text, in the page and in its pictures.
func TestHostileTextStaysText(t *testing.T) {
	const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'><svg onload=alert(3)>`
	doc := Document{Title: hostile, Universe: 1, Comparisons: []stats.Comparison{{
		Compare: hostile, Benchmark: hostile, Commit: hostile, Candidate: hostile + "/" + hostile, Against: hostile,
		Metric: hostile, Primary: true,
		Verdict: stats.Verdict{Outcome: stats.Win, Reason: hostile, Effect: 0.5, Low: 0.4, High: 0.6, Blocks: 7,
			Caveats: []stats.Caveat{{Text: hostile}}}, Unit: hostile,
	}}, Measurements: []Measurement{{Benchmark: hostile, Commit: hostile, Candidate: hostile, Metric: hostile,
		Unit: hostile, Value: 1}},
		Failures: []Failed{{Address: hostile, Log: hostile,
			Failure: failure.Failure{Evidence: hostile, Rule: hostile}}},
		Skips: []Skip{{hostile, hostile}}}
	page := pageOf(t, doc)
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d scripts, want 2", n)
	}
	for _, forbidden := range []string{"<img", "<svg onload"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
}

// Two thousand rows with their samples stay a page that can be mailed.
func TestLargePage(t *testing.T) {
	needtest.NoRace(t)
	doc := Document{}
	for i := range 2000 {
		commit := fmt.Sprintf("c%04d", i)
		doc.Comparisons = append(doc.Comparisons, stats.Comparison{Compare: "c", Benchmark: "b", Commit: commit,
			Candidate: commit + "/human",
			Against:   commit + "/baseline", Metric: "m", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.Win, Effect: 0.1, Low: 0.05, High: 0.15, Blocks: 7, Better: "lower"},
			Unit:    "s"})
		for block := range 7 {
			for order, variant := range []string{"baseline", "human"} {
				doc.Measurements = append(doc.Measurements, Measurement{Benchmark: "b", Commit: commit,
					Candidate: commit + "/" + variant, Metric: "m",
					Value: 1 + float64(block)/100, Unit: "s", Block: block + 1, Order: order + 1,
					Start: time.Unix(1, 0)})
			}
		}
	}
	doc.Universe = len(doc.Comparisons)
	if page := pageOf(t, doc); len(page) > 40<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// Tables have the p of the test that decides; any other has its name.
func TestEachPHasItsName(t *testing.T) {
	for want, v := range map[string]stats.Verdict{"p_t 0.0200": {P: 0.125, PT: 0.02}, "p 0.1250": {P: 0.125}} {
		if got := testP(stats.Comparison{Verdict: v}); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
