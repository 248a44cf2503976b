package report

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/report/document"
)

// TestPageInABrowser opens the page in a real browser. The script runs under the page's own policy, the policy refuses
// nothing that the page needs, and a hostile title stays text.
func TestPageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	doc := campaign()
	doc.Title = `<script>document.title="taken"</script>`
	before := dumped(t, doc)
	if !strings.Contains(before, `class="filter"`) || !strings.Contains(before, "<th scope=\"col\"><button") {
		t.Error("the script did not run: no filter, or no buttons to sort by")
	}
	title := regexp.MustCompile(`(?s)<title>(.*?)</title>`).FindStringSubmatch(before)
	if title == nil || !strings.Contains(title[1], "document.title") {
		t.Errorf("the title is %q, not the text of the document", title)
	}
	if !strings.Contains(before, ` data-scrolled=""`) {
		t.Errorf("tables scroll sideways, or break words, at these widths: %.300s", before)
	}
	if !strings.Contains(before, ` data-seen="true,true"`) {
		t.Errorf("a row that a link leads to lies under the sections, or no sign shows how rows are sorted: %.300s",
			before)
	}
}

// framed is a page that measures the report in a frame of several widths, and then takes its document.
const framed = `<iframe src="report.html" height="900"></iframe><script>onload = () => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument, scrolled = [], top = (selector) =>
    page.querySelector(selector).getBoundingClientRect();
  for (const width of [720, 800, 1100, 1600]) {
    frame.width = width;
    for (const table of page.querySelectorAll("section > .wide > table.verdicts")) {
      const box = table.parentNode;
      if (box.clientWidth < width / 2 || box.scrollWidth > box.clientWidth) scrolled.push(width);
    }
    for (const cell of page.querySelectorAll("#failures td, #failures th")) {
      if (cell.clientWidth < 40) scrolled.push(width);
    }
  }
  const button = page.querySelector(".sortable button"), view = frame.contentWindow;
  const sign = () => view.getComputedStyle(button, "::after").content, unsorted = sign();
  button.click();
  frame.contentDocument.querySelector("tr[id]").scrollIntoView();
  page.documentElement.dataset.seen = [top("tr[id]").top >= top("nav").bottom, sign() !== unsorted];
  page.documentElement.dataset.scrolled = scrolled;
  document.replaceChild(document.importNode(page.documentElement, true), document.documentElement);
}</script>`

// dumped is the page's document as a browser has it after the script ran.
func dumped(t *testing.T, doc document.Document) string {
	t.Helper()
	browser := needtest.Chromium(t)
	dir := t.TempDir()
	page := filepath.Join(dir, "report.html")
	if err := os.WriteFile(page, []byte(pageOf(t, doc)), 0o600); err != nil {
		t.Fatal(err)
	}
	frame := filepath.Join(dir, "frame.html")
	if err := os.WriteFile(frame, []byte(framed), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
		"--user-data-dir="+filepath.Join(dir, "profile"),
		"--allow-file-access-from-files", "--dump-dom", "file://"+frame)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser says: %s", line)
		}
	}
	return out.String()
}
