//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watched is a project that is measured while a page shows it. The second commit waits for the file go.
const watched = `
benchgraph { sandbox = "none" }
commit "one" { title = "<script>document.title = 'taken'</script>" }
commit "two" {}
variant "base" { baseline = true }
variant "v1" {}
variant "v2" {}
variant "v3" {}
variant "v4" {}
wheel "rate" {
  for_each = candidates
  build { command = "echo ${each.variant.name == "base" ? 100 : 200} > $OUT/rate" }
}
benchmark "speed" {
  for_each = candidates
  data     = { rate = wheel.rate[each.key] }
  command  = "echo '<b>begun</b>'; while [ ${each.commit.name} = two ] && [ ! -e $HOME/../go ]; do sleep 0.05; done; echo released; echo rate: $(cat rate)"
  design {
    samples = 4
    max     = 4
  }
  metrics {
    metric "rate" {
      match  = "rate: ([0-9]+)"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.speed] }
`

// site is the benchgraph serve of a world.
type site struct {
	t    testing.TB
	cmd  *exec.Cmd
	base string
	err  *bytes.Buffer
}

func (w *world) serve(args ...string) *site {
	w.t.Helper()
	s := &site{t: w.t, cmd: w.command(append([]string{"serve", "-addr=127.0.0.1:0"}, args...)...), err: &bytes.Buffer{}}
	s.cmd.Stderr = s.err
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.t.Fatalf("%v: %s", err, s.err)
	}
	s.base = strings.TrimSpace(line)
	return s
}

func (s *site) ask(change func(*http.Request), path string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// await repeats a request until the answer has a text.
func (s *site) await(path, want string) string {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, text := s.ask(nil, path)
		if strings.Contains(text, want) {
			return text
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s does not come to hold %q:\n%s", path, want, text)
		}
	}
}

// TestServe looks at a project in a browser while other processes apply it, one of which is killed. Choices on the page
// stay, hostile text is shown as text, and nothing is written.
func TestServe(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	w := newWorld(t, watched)
	site := w.serve()
	site.await("", "Nothing has been applied here.")
	site.await("", "&lt;script&gt;document.title")
	browser := newChromium(t)
	browser.open(site.base)
	title := browser.eval("document.title")
	browser.await("document.querySelectorAll('#compare-all tr[data-outcome=not_run]').length === 8")
	browser.eval(`document.getElementById("commit-1").open = true; const find = ` +
		`document.querySelector("#compare-all input[type=search]"); find.value = "v3"; ` +
		`find.dispatchEvent(new Event("input", { bubbles: true })); find.focus(); ` +
		`document.querySelector("#compare-all th button").click()`)

	first := w.command("apply")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	browser.await(`document.querySelectorAll("#now figure g").length > 0`) // samples, as dots
	browser.await(`document.querySelectorAll(".matrix a[href='#row-1'].o-win").length === 1`)
	browser.await(`document.querySelectorAll("#compare-all tr[data-outcome=win]").length === 4`)
	for expression, want := range map[string]string{
		`document.querySelector("#compare-all input[type=search]").value`:     "v3",
		`document.querySelector("#compare-all th").getAttribute("aria-sort")`: "ascending",
		`document.getElementById("commit-1").open`:                            "true",
		`document.getElementById("commit-2").open`:                            "false",
		`document.activeElement.type`:                                         "search",
		`document.title`:                                                      title,
		`[...document.querySelectorAll("#compare-all table.rows")[0].tBodies[0].rows]` +
			`.filter((r) => !r.hidden).length`: "2",
		`[...document.querySelectorAll("#commit-1 summary")][0]` +
			`.textContent.includes("<script>document.title")`: "true",
		`document.querySelectorAll("#compare-all tr[data-outcome=win] td:nth-child(4) ` +
			`strong")[0].textContent.replace(/[^×+.0-9]/g, "")`: "+100.00",
	} {
		if got := browser.eval(expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}

	// The second commit waits. Its apply is killed, and the next one goes on.
	browser.await(`document.querySelector("#now[data-active] th code")?.textContent.startsWith("trial.speed[\"two")`)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	browser.await(`document.getElementById("now").textContent.includes("was ended from outside while")`)
	second := w.command("apply")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	browser.await(`document.querySelector("#now[data-active] th code")?.textContent.startsWith("trial.speed[\"two")`)
	log := browser.eval(`[...document.querySelectorAll("#now a")].find((a) => ` +
		`a.href.includes("trial.speed%5b%22two")).href`)
	main := browser.session
	browser.open(log)
	browser.await(`/^<b>begun<.b>$/m.test(document.querySelector("main > #log")?.textContent)`)
	site.logs(log)
	w.write("go", "")
	browser.await(`/^released$/m.test(document.getElementById("log").textContent)`) // by ranges
	browser.await(`document.getElementById("how").textContent.includes("has ended")`)
	browser.session = main
	browser.await(`document.querySelectorAll("#compare-all tr[data-outcome=win]").length === 8`)
	browser.await(`document.getElementById("now").textContent.includes("No apply runs.")`)
	if err := second.Wait(); err != nil {
		t.Fatal(err)
	}
	site.events()
	site.metrics()
	site.refuses()

	// Whatever is requested, the project and its state stay the same.
	before := picture(t, w.dir)
	site.await("", "8 win")
	site.ask(nil, "now")
	site.ask(nil, "metrics")
	w.write("benchmarks.hcl", watched+"# another stamp\n")
	read := regexp.MustCompile(`read at [-0-9: ]+`)
	old := read.FindString(site.await("now", "read at"))
	for read.FindString(site.await("", "read at")) == old {
		time.Sleep(50 * time.Millisecond)
	}
	w.write("benchmarks.hcl", watched)
	if after := picture(t, w.dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	browser.mu.Lock()
	defer browser.mu.Unlock()
	if len(browser.said) > 0 {
		t.Errorf("the browser says: %q", browser.said)
	}
	if delete(browser.asked, strings.TrimSuffix(strings.TrimPrefix(site.base, "http://"),
		"/")); len(browser.asked) > 0 {
		t.Errorf("the page asked elsewhere: %v", browser.asked)
	}
	if err := site.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = site.cmd.Wait(); site.cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("exit code %d, want 130\n%s", site.cmd.ProcessState.ExitCode(), site.err)
	}
}

// logs reads the log of a page in parts.
func (s *site) logs(page string) {
	s.t.Helper()
	text := strings.Replace(strings.TrimPrefix(page, s.base), "log?", "log.txt?", 1)
	whole, log := s.ask(nil, text)
	if !strings.Contains(log, "\n<b>begun</b>\n") || !strings.HasPrefix(whole.Header.Get("Content-Type"),
		"text/plain") {
		s.t.Errorf("%s: %q", whole.Header, log)
	}
	part, middle := s.ask(func(r *http.Request) { r.Header.Set("Range", "bytes=3-9") }, text)
	if part.StatusCode != http.StatusPartialContent || middle != log[3:10] ||
		part.Header.Get("Benchgraph-Attempt") != "running" {
		s.t.Errorf("%s, %s: %q", part.Status, part.Header, middle)
	}
	if end, _ := s.ask(func(r *http.Request) {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", len(log)))
	}, text); end.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		s.t.Errorf("at the end: %s", end.Status)
	}
}

// stream reads the events up to the next pause of the log.
func (s *site) stream(last string, most int) (ids []string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.base+"events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", last)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for len(ids) < most && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// events goes on after the last event of a client.
func (s *site) events() {
	s.t.Helper()
	all := s.stream("", 20)
	if rest := s.stream(all[4], 15); strings.Join(rest, " ") != strings.Join(all[5:], " ") {
		s.t.Errorf("after %s: %s, want %s", all[4], rest, all[5:])
	}
	for _, nonsense := range []string{"../../../etc/passwd:0", all[0] + "0000000", "x",
		all[4][:strings.Index(all[4], ":")] + ":-5"} {
		if ids := s.stream(nonsense, 5); strings.Join(ids, " ") != strings.Join(all[:5], " ") {
			s.t.Errorf("after %q: %s", nonsense, ids)
		}
	}
}

// metrics returns lines of Prometheus' text format.
func (s *site) metrics() {
	s.t.Helper()
	text := s.await("metrics", `benchgraph_candidates{compare="all",outcome="win"} 8`)
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? ` +
		`[-+.e0-9]+)$`)
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			s.t.Errorf("not a line of the format: %q", l)
		}
	}
	for _, want := range []string{"benchgraph_applying 0\n", `benchgraph_nodes{state="done"} `,
		`benchgraph_run_nodes{state="failed"} 0`} {
		if !strings.Contains(text, want) {
			s.t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// refuses checks that the page refuses writing requests, other host names, and names of files.
func (s *site) refuses() {
	s.t.Helper()
	for _, c := range []struct {
		what   string
		change func(*http.Request)
		path   string
		want   int
	}{
		{"a change", func(r *http.Request) { r.Method = http.MethodPost }, "", http.StatusMethodNotAllowed},
		{"another name", func(r *http.Request) { r.Host = "rebound.example" }, "", http.StatusMisdirectedRequest},
		{"another address", func(r *http.Request) { r.Host = "10.0.0.1" }, "", http.StatusMisdirectedRequest},
		{"this machine", func(r *http.Request) { r.Host = "localhost:9" }, "", http.StatusOK},
		{"only the head", func(r *http.Request) { r.Method = http.MethodHead }, "", http.StatusOK},
		{"the icon that browsers ask for", nil, "favicon.ico", http.StatusNoContent},
		{"a path", nil, "%2e%2e/%2e%2e/etc/passwd", http.StatusNotFound},
		{"an attempt that is a path", nil, "log.txt?" + url.Values{"node": {`wheel.rate["one/v1"]`},
			"attempt": {"../apply"}}.Encode(), http.StatusNotFound},
		{"an unknown node", nil, "log?node=../../benchmarks.hcl", http.StatusNotFound},
		{"the last attempt", nil, "log?" + url.Values{"node": {`wheel.rate["one/v1"]`}}.Encode(), http.StatusOK},
	} {
		if answer, text := s.ask(c.change, c.path); answer.StatusCode != c.want {
			s.t.Errorf("%s: %s, want %d: %s", c.what, answer.Status, c.want, text)
		} else if csp := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") {
			s.t.Errorf("%s: policy %q", c.what, csp)
		}
	}
}

// picture returns all files below a directory, with their sizes and times.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && path != dir && filepath.Base(path) != "benchmarks.hcl" {
			fmt.Fprintln(&b, path, info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
