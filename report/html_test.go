package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

func pageOf(t *testing.T, doc document.Document) string {
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
		if want := fmt.Sprintf("%s &#39;%s&#39;", source, strings.ReplaceAll(digestOf(inside[0][1]), "+",
			"&#43;")); !strings.Contains(page, want) {
			t.Errorf("the policy has no %s", want)
		}
	}
	for _, forbidden := range []string{" style=", " onclick=", "<link", "<img", "src=", "@import", "url("} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	if _, script, _ := strings.Cut(page, "<script>"); strings.Index(script, "</script>") > 10_000 {
		t.Errorf("the script has %d bytes, more than 10,000", strings.Index(script, "</script>"))
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Every text has a contrast of 4.5 with what lies below it, in both schemes. Counts stand on the colours of outcomes.
func TestContrast(t *testing.T) {
	page := pageOf(t, campaign())
	schemes := regexp.MustCompile(`:root\{(.*?)\}`).FindAllStringSubmatch(page, -1)
	if len(schemes) != 2 || !strings.Contains(page, "svg .on{fill:var(--bg)") {
		t.Fatalf("%d schemes, want 2, or counts do not have the colour of the page", len(schemes))
	}
	for _, scheme := range schemes {
		colour := map[string]string{}
		for _, pair := range strings.Split(scheme[1], ";") {
			name, value, _ := strings.Cut(pair, ":")
			colour[name] = value
		}
		for _, on := range []string{"--bg", "--panel"} {
			for _, name := range []string{"fg", "dim", "link", "win", "loss", "tie", "open", "none", "bad"} {
				a, b := luminance(t, colour["--"+name]), luminance(t, colour[on])
				if c := (max(a, b) + 0.05) / (min(a, b) + 0.05); c < 4.5 {
					t.Errorf("--%s %s on %s %s: %.2f", name, colour["--"+name], on, colour[on], c)
				}
			}
		}
	}
}

// luminance is that of a colour, by the rules of WCAG.
func luminance(t *testing.T, colour string) (sum float64) {
	t.Helper()
	if len(colour) == len("#fff") {
		colour = regexp.MustCompile(`[0-9a-f]`).ReplaceAllString(colour, "$0$0")
	}
	var rgb [3]uint8
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		t.Fatalf("%q: %v", colour, err)
	}
	for i, share := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(rgb[i]) / 255
		if v > 0.03928 {
			v = math.Pow((v+0.055)/1.055, 2.4) * 12.92
		}
		sum += share * v / 12.92
	}
	return sum
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

// The page is the export: report.json is in it, whole.
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
	doc := document.Document{Title: hostile, Universe: 1, Comparisons: []stats.Comparison{{
		Compare: hostile, Benchmark: hostile, Commit: hostile, Candidate: hostile + "/" + hostile, Against: hostile,
		Metric: hostile, Primary: true,
		Verdict: stats.Verdict{Outcome: stats.Win, Reason: hostile, Effect: 0.5, Low: 0.4, High: 0.6, Blocks: 7,
			Caveats: []stats.Caveat{{Text: hostile}}}, Unit: hostile,
	}}, Measurements: []document.Measurement{{Benchmark: hostile, Commit: hostile, Candidate: hostile, Metric: hostile,
		Unit: hostile, Value: 1}},
		Failures: []document.Failed{{Address: hostile, Log: hostile,
			Failure: failure.Failure{Evidence: hostile, Rule: hostile}}},
		Skips: []document.Skip{{Address: hostile, Reason: hostile}}}
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
	doc := document.Document{}
	for i := range 2000 {
		commit := fmt.Sprintf("c%04d", i)
		doc.Comparisons = append(doc.Comparisons, stats.Comparison{Compare: "c", Benchmark: "b", Commit: commit,
			Candidate: commit + "/human",
			Against:   commit + "/baseline", Metric: "m", Primary: true,
			Verdict: stats.Verdict{Outcome: stats.Win, Effect: 0.1, Low: 0.05, High: 0.15, Blocks: 7, Better: "lower"},
			Unit:    "s"})
		for block := range 7 {
			for order, variant := range []string{"baseline", "human"} {
				doc.Measurements = append(doc.Measurements, document.Measurement{Benchmark: "b", Commit: commit,
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
		if got := document.TestP(stats.Comparison{Verdict: v}); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
