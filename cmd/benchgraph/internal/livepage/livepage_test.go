package livepage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/report/document"
)

// start runs a server for a test, and says under which address it answers and where its run logs are.
func start(t *testing.T, c Config) (base string, dir string) {
	t.Helper()
	dir = t.TempDir()
	c.Title, c.Runs, c.Lock = "title", dir, filepath.Join(dir, "lock")
	c.Log = func(attempt string) string { return filepath.Join(dir, attempt+".log") }
	if c.Stamp == nil {
		c.Stamp = func() string { return "one" }
	}
	if c.Read == nil {
		c.Read = func(context.Context) (*Results, error) {
			return &Results{LogOf: func(string, string, int) string { return "" }}, nil
		}
	}
	if c.Tell == nil {
		c.Tell = func(error) {}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, l, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
	return "http://" + l.Addr().String() + "/", dir
}

func ask(t *testing.T, client *http.Client, address string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// Who has the token from the address gets a cookie for it, and the address no longer holds it. Programs send it as a
// bearer.
func TestToken(t *testing.T) {
	const token = "right horse"
	base, _ := start(t, Config{Token: token})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	for _, wrong := range []string{
		"", "?token=", "?token=right+horsf", "?token=right+horse%00", "log?node=x&token=wrong", "events?token=wrong",
		"metrics",
	} {
		if answer, _ := ask(t, browser, base+wrong); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %s", wrong, answer.Status)
		}
	}
	if answer, _ := ask(t, browser, base, "Authorization",
		"Bearer wrong"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong bearer: %s", answer.Status)
	}
	if answer, _ := ask(t, http.DefaultClient, base+"metrics", "Authorization",
		"Bearer "+token); answer.StatusCode != http.StatusOK {
		t.Errorf("the bearer: %s", answer.Status)
	}
	answer, _ := ask(t, browser, base+"now?a=b&"+url.Values{"token": {token}}.Encode())
	if answer.StatusCode != http.StatusOK || answer.Request.URL.String() != base+"now?a=b" {
		t.Errorf("with the token: %s at %s", answer.Status, answer.Request.URL)
	}
	if answer, _ := ask(t, browser, base); answer.StatusCode != http.StatusOK {
		t.Errorf("with the cookie: %s", answer.Status)
	}
	if answer, _ := ask(t, http.DefaultClient, base, "Host", "x"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the cookie: %s", answer.Status)
	}
}

// Idle connections keep nobody out: the one that has been idle for longest makes room.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	base, _ := start(t, Config{})
	var idle []net.Conn
	for range mostOpen {
		c, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(base, "http:"), "/"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	if answer, _ := ask(t, client, base+"now"); answer.StatusCode != http.StatusOK {
		t.Errorf("beside %d idle connections: %s", mostOpen, answer.Status)
	}
	for i, c := range idle[:2] {
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) != (i == 0) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// The number of clients of events is limited, and a client that leaves makes room.
func TestClientsAreBounded(t *testing.T) {
	base, dir := start(t, Config{})
	if err := os.WriteFile(runlog.Path(dir, "20260101T000000.000-1"), []byte("{\"type\":\"node_start\"}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var open []io.Closer
	for range mostClients {
		answer, err := http.Get(base + "events")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		open = append(open, answer.Body)
		if line, err := bufio.NewReader(answer.Body).ReadString('\n'); line != "retry: 2000\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	answer, _ := ask(t, http.DefaultClient, base+"events")
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s", answer.Status)
	}
	open[0].Close()
	for {
		r, err := http.Get(base + "events")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return
		}
	}
}

// A client gets each line of a log once, whole lines only, and then those of the next log. Lines without an event
// are skipped.
func TestEventsFollowTheNewestLog(t *testing.T) {
	base, dir := start(t, Config{})
	first, second := "20260101T000000.000-1", "20260101T000000.001-1"
	write := func(run, text string) {
		t.Helper()
		f, err := os.OpenFile(runlog.Path(dir, run), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 2*runlog.Longest)
	write(first, "{\"n\":1}\nno event\rid: 7\n{\"n\":\""+long+"\"}\n{\r\"n\":2}\n{\"n\"")
	answer, err := http.Get(base + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() (id, data string) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			} else if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && id != "" {
				return id, text
			}
		}
		return "", "the end: " + fmt.Sprint(lines.Err())
	}
	expect := func(id, data string) {
		t.Helper()
		if gotID, got := next(); gotID != id || got != data {
			t.Fatalf("event %q: %s, want %q: %s", gotID, got, id, data)
		}
	}
	expect(first+":8", `{"n":1}`)
	end := int64(8 + len("no event\rid: 7\n{\"n\":\"") + len(long) + len("\"}\n{\r\"n\":2}\n"))
	expect(position(first, end), `{"n":2}`)
	write(first, ":3}\n")
	expect(position(first, end+8), `{"n":3}`)
	write(first, "{\"n\":4}\n")
	write(second, "{\"n\":5}\n")
	expect(position(first, end+16), `{"n":4}`)
	expect(second+":8", `{"n":5}`)
}

// Results that cannot be read leave those that were, with the reason beside them.
func TestResultsThatCannotBeRead(t *testing.T) {
	fail := make(chan bool, 1)
	told := make(chan error, 1)
	var stamp atomic.Value
	stamp.Store("one")
	c := Config{
		Stamp: func() string { return stamp.Load().(string) },
		Read: func(context.Context) (*Results, error) {
			select {
			case <-fail:
				return nil, errors.New("benchmarks.hcl:3: <b>mistake</b>")
			default:
			}
			doc := document.Document{Title: "campaign"}
			return &Results{Document: doc, LogOf: func(string, string, int) string { return "" }}, nil
		},
		Tell: func(err error) { told <- err },
	}
	base, _ := start(t, c)
	await := func(path, want string) string {
		t.Helper()
		for {
			if _, text := ask(t, http.DefaultClient, base+path); strings.Contains(text, want) {
				return text
			}
		}
	}
	await("", "<h1>campaign</h1>")
	fail <- true
	stamp.Store("two")
	if text := await("", "&lt;b&gt;mistake"); !strings.Contains(text, "<h1>campaign</h1>") {
		t.Errorf("the results that were there are gone:\n%s", text)
	}
	if err := <-told; !strings.Contains(err.Error(), "mistake") {
		t.Error(err)
	}
	await("metrics", "benchgraph_results_failed 1")
}

func TestWholeCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "aä": "aä", "a\xc3": "a", "a\xe2\x82": "a", "a\xf0\x9f\x98": "a", "€": "€", "a\x80": "a\x80",
		"\xff": "\xff",
	} {
		if got := string(whole([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The sentence, the tiles and the figures count the same nodes: as they stood when the results were read, and as the
// apply has told since. A node that runs is not counted as waiting.
func TestCountsAgree(t *testing.T) {
	read := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tail := newTail(t.TempDir(), "")
	tail.at.run, tail.at.ended = "run", map[string]string{}
	event := func(kind, address, more string) {
		tail.take(0, fmt.Appendf(nil, `{"type":%q,"address":%q,"time":%q%s}`+"\n", kind, address,
			read.Add(time.Second).Format(time.RFC3339), more))
	}
	for _, address := range []string{"a", "b", "c", "d"} {
		event("node_start", address, "")
	}
	event("node_done", "a", "")
	event("node_failed", "b", `,"retrying":true`)
	event("node_failed", "c", "")
	event("node_start", "c", "") // in a later wave
	event("node_done", "c", "")
	event("node_start", "e", "")
	event("node_failed", "e", "")
	event("node_start", "f", "")
	event("diagnostic", "f", `,"reason":"waiting: the start of its job"`)
	at, _ := tail.now()
	at.held = true
	s := &Server{config: Config{States: []string{"done", "running", "waiting", "failed"}}}
	results := shown{at: read, results: &Results{Nodes: map[string]string{"a": "waiting", "b": "waiting",
		"c": "waiting", "d": "waiting", "e": "waiting", "f": "waiting", "g": "done"}}}
	if got, want := fmt.Sprint(s.states(results, at)), "[{done 3} {running 1} {waiting 2} {failed 1}]"; got != want {
		t.Errorf("the tiles are %s, want %s", got, want)
	}
	if done, failed := at.count("done"), at.count("failed"); done != 2 || failed != 1 {
		t.Errorf("%d done and %d failed, want 2 and 1", done, failed)
	}
	// Results that are newer than the last event win, for example if a result was removed.
	results.at = read.Add(time.Minute)
	at.held = false
	if got, want := fmt.Sprint(s.states(results, at)), "[{done 1} {waiting 6}]"; got != want {
		t.Errorf("later, the tiles are %s, want %s", got, want)
	}
}
