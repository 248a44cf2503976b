package download

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// web is a server that counts who is there.
type web struct {
	*httptest.Server
	asked, now, most atomic.Int64
}

func newWeb(t *testing.T, h http.HandlerFunc) *web {
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		n := w.now.Add(1)
		defer w.now.Add(-1)
		for most := w.most.Load(); n > most && !w.most.CompareAndSwap(most, n); most = w.most.Load() {
		}
		h(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *web) host(t *testing.T) string {
	u, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// hangs answers when the asker has gone away.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// slow answers like h after the time that a distant server takes.
func slow(after time.Duration, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(after)
		h(w, r)
	}
}

// even has the files with an even number.
func even(w http.ResponseWriter, r *http.Request) {
	var n int
	if fmt.Sscanf(r.URL.Path, "/%d", &n); n%2 == 1 {
		w.WriteHeader(http.StatusNotFound)
	}
}

// record is what was written, which may still go on.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *record) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *record) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// heads asks for n files of each URL, all at once.
func heads(ctx context.Context, a *Asker, n int, urls ...string) (there, absent, unverified int, last error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		for _, u := range urls {
			wg.Go(func() {
				_, err := a.Head(ctx, fmt.Sprintf("%s/%d", u, i))
				mu.Lock()
				defer mu.Unlock()
				_, refused := errors.AsType[*Refused](err)
				_, open := errors.AsType[*Unverified](err)
				switch {
				case err == nil:
					there++
				case refused:
					absent++
				case open:
					unverified++
					last = err
				default:
					last = err
				}
			})
		}
	}
	wg.Wait()
	return there, absent, unverified, last
}

func TestACampaignIsAskedInParallel(t *testing.T) {
	a := newWeb(t, slow(150*time.Millisecond, even))
	b := newWeb(t, slow(150*time.Millisecond, even))
	asker := NewAsker(AskOptions{Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: PerHost}},
		Keep: filepath.Join(t.TempDir(), "answers")})
	begun := time.Now()
	there, absent, open, err := heads(t.Context(), asker, 144, a.URL, b.URL)
	if there != 144 || absent != 144 || open != 0 || err != nil {
		t.Errorf("%d there, %d absent, %d unverified, %v", there, absent, open, err)
	}
	t.Logf("288 questions to 2 hosts at 150 ms took %v", time.Since(begun))
	if n := max(a.most.Load(), b.most.Load()); n > PerHost || n < 2 {
		t.Errorf("%d questions at a time to one host", n)
	}
}

func TestAnswersAreKept(t *testing.T) {
	w := newWeb(t, even)
	now := time.Now()
	o := AskOptions{Keep: filepath.Join(t.TempDir(), "answers"), Clock: func() time.Time { return now }}
	first := NewAsker(o)
	heads(t.Context(), first, 10, w.URL)
	if err := first.Save(); err != nil {
		t.Fatal(err)
	}
	second := NewAsker(o)
	there, absent, _, _ := heads(t.Context(), second, 10, w.URL)
	if w.asked.Load() != 10 || there != 5 || absent != 5 {
		t.Errorf("%d requests, %d there, %d absent", w.asked.Load(), there, absent)
	}
	now = now.Add(answerLife)
	if there, absent, _, _ = heads(t.Context(), second, 10, w.URL); w.asked.Load() != 20 || there != 5 || absent != 5 {
		t.Errorf("later: %d requests, %d there, %d absent", w.asked.Load(), there, absent)
	}
	if text, err := os.ReadFile(o.Keep); err != nil || strings.Contains(string(text), w.URL) {
		t.Errorf("the URL is in the file: %s, %v", text, err)
	}
	if err := os.WriteFile(o.Keep, []byte(`{"format":1,"answers":{"x":`), 0o644); err != nil {
		t.Fatal(err)
	}
	if there, _, _, _ = heads(t.Context(), NewAsker(o), 10, w.URL); there != 5 || w.asked.Load() != 30 {
		t.Errorf("after damage: %d there, %d requests", there, w.asked.Load())
	}
}

// refusing is the address of a port at which nobody listens.
func refusing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// counting counts what a client sends.
type counting struct {
	*http.Transport
	n atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.Transport.RoundTrip(r)
}

func TestADeadHostIsGivenUp(t *testing.T) {
	hanging := newWeb(t, hangs)
	failing := newWeb(t, status(500))
	stranger := &web{}
	stranger.Server = httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			stranger.asked.Add(1)
		}
	}
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	throttling := newWeb(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	for name, c := range map[string]struct {
		url   string
		asked func() int64
		most  int64 // requests; those that were under way when the host was given up may be as many as may be at a time
		why   string
	}{
		"hangs":    {hanging.URL, hanging.asked.Load, PerHost + 1, "no answer within 200ms"},
		"500":      {failing.URL, failing.asked.Load, 2*PerHost + 2, "500 Internal Server Error"},
		"429":      {throttling.URL, throttling.asked.Load, PerHost + 2, "429 Too Many Requests"},
		"refuses":  {refusing(t), nil, 0, "connection refused"},
		"no name":  {"http://wheels.invalid", nil, 0, "wheels.invalid"},
		"stranger": {stranger.URL, stranger.asked.Load, 2*PerHost + 2, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &record{}
			patience := time.Minute
			if name == "hangs" {
				patience = 200 * time.Millisecond
			}
			o := AskOptions{Keep: filepath.Join(t.TempDir(), "answers"), Progress: printable.NewWriter(out),
				Patience: patience, Pause: time.Millisecond,
				Client: &http.Client{Transport: &http.Transport{}}}
			a := NewAsker(o)
			there, absent, open, err := heads(t.Context(), a, 100, c.url)
			if there+absent != 0 || open != 100 || !strings.Contains(fmt.Sprint(err), c.why) {
				t.Errorf("%d there, %d absent, %d unverified: %v", there, absent, open, err)
			}
			if c.asked != nil && (c.asked() > c.most || c.asked() == 0) {
				t.Errorf("%d requests", c.asked())
			}
			if n := strings.Count(out.String(), "does not answer"); n != 1 ||
				!strings.Contains(out.String(), "It is not asked any more.") {
				t.Errorf("told %d times:\n%s", n, out)
			}
			if err := a.Save(); err != nil {
				t.Fatal(err)
			}
			// Counted where the next process sends: the server may still be starting on what the first one sent.
			sent := &counting{Transport: &http.Transport{}}
			next := o
			next.Client = &http.Client{Transport: sent}
			_, _, open, err = heads(t.Context(), NewAsker(next), 3, c.url)
			if open != 3 || !strings.Contains(fmt.Sprint(err), "is asked again after") {
				t.Errorf("the next process: %d unverified, %v", open, err)
			}
			if n := sent.n.Load(); n != 0 {
				t.Errorf("the next process asked again, %d times", n)
			}
			next.Clock = func() time.Time { return time.Now().Add(deadLife) }
			heads(t.Context(), NewAsker(next), 1, c.url)
			if sent.n.Load() == 0 {
				t.Errorf("nobody asked later")
			}
		})
	}
}

// A host that answers some of the questions is not given up, and one bad answer is asked for a second time.
func TestAHostThatAnswersIsNotGivenUp(t *testing.T) {
	var failed sync.Map
	w := newWeb(t, func(w http.ResponseWriter, r *http.Request) {
		if _, again := failed.LoadOrStore(r.URL.Path, true); !again {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	there, absent, open, err := heads(t.Context(), NewAsker(AskOptions{Pause: time.Millisecond}), 60, w.URL)
	if there != 60 || absent+open != 0 {
		t.Errorf("%d there, %d absent, %d unverified: %v", there, absent, open, err)
	}
}

func TestOneLimitForAllQuestions(t *testing.T) {
	w := newWeb(t, slow(20*time.Millisecond, even))
	out := &record{}
	a := NewAsker(AskOptions{Limit: 500 * time.Millisecond, Quiet: 40 * time.Millisecond,
		Progress: printable.NewWriter(out)})
	begun := time.Now()
	there, absent, open, err := heads(t.Context(), a, 1000, w.URL)
	if there+absent == 0 || open == 0 || there+absent+open != 1000 ||
		!strings.Contains(fmt.Sprint(err), "the limit of 500ms for all questions of a plan is used up") {
		t.Errorf("%d there, %d absent, %d unverified, %v", there, absent, open, err)
	}
	t.Logf("took %v", time.Since(begun))
	if text := out.String(); !regexp.MustCompile("waiting for " + regexp.QuoteMeta(w.host(t)) +
		`: \d+ of \d+ questions are answered \(`).MatchString(text) {
		t.Errorf("nobody was told who is waited for:\n%s", text)
	}
	if _, err := a.Head(t.Context(), w.URL+"/2000"); !strings.Contains(fmt.Sprint(err), "used up") {
		t.Errorf("after the limit: %v", err)
	}
	a.Begin()
	if _, err := a.Head(t.Context(), w.URL+"/2000"); err != nil {
		t.Errorf("the next plan: %v", err)
	}
}

func TestOfflineNobodyIsAsked(t *testing.T) {
	w := newWeb(t, even)
	keep := filepath.Join(t.TempDir(), "answers")
	online := NewAsker(AskOptions{Keep: keep})
	heads(t.Context(), online, 1, w.URL)
	if err := online.Save(); err != nil {
		t.Fatal(err)
	}
	there, _, open, err := heads(t.Context(), NewAsker(AskOptions{Keep: keep, Offline: true}), 3, w.URL)
	if there != 1 || open != 2 || w.asked.Load() != 1 || !strings.Contains(err.Error(), "unverified: -offline") {
		t.Errorf("%d there, %d unverified, %d requests, %v", there, open, w.asked.Load(), err)
	}
	file := filepath.Join(t.TempDir(), "a.whl")
	if err := os.WriteFile(file, []byte("wheel"), 0o644); err != nil {
		t.Fatal(err)
	}
	if info, err := NewAsker(AskOptions{Offline: true}).Head(t.Context(), file); err != nil || info.Size != 5 {
		t.Errorf("a file of this machine: %+v, %v", info, err)
	}
}

func TestAnInterruptEndsAllQuestions(t *testing.T) {
	w := newWeb(t, hangs)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
	_, _, open, err := heads(ctx, NewAsker(AskOptions{}), 40, w.URL)
	if open != 0 || !errors.Is(err, enough) {
		t.Errorf("%d unverified, %v", open, err)
	}
}

func TestWatchTellsWhatIsWaitedFor(t *testing.T) {
	out := &record{}
	a := NewAsker(AskOptions{Quiet: 10 * time.Millisecond, Progress: out})
	end := a.Watch("https://someone:password@git.example.org/x.git", "the history of repo.x")
	for begun := time.Now(); out.String() == "" && time.Since(begun) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	end()
	end()
	if text := out.String(); !strings.HasPrefix(text, "waiting for git.example.org: the history of repo.x (") ||
		strings.Contains(text, "password") {
		t.Errorf("%q", text)
	}
}

// FuzzAnswers reads files of answers that somebody else wrote.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"format":1,"answers":{"ab":{"at":"2026-11-22T10:00:00Z","status":404,"size":0}},` +
		`"dead":{"h":{"at":"2026-11-22T10:00:00Z","why":"x"}}}`))
	now := time.Date(2026, 11, 22, 10, 1, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		var b book
		fuzzing.Frugal(t, len(data), func() { b = parseBook(data, now) })
		b.Answers["x"] = keptHead{At: now, Size: 1}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if again := parseBook(text, now); again.Answers["x"].Size != 1 || len(again.Answers) != len(b.Answers) ||
			len(again.Dead) != len(b.Dead) {
			t.Errorf("%+v was read as %+v", b, again)
		}
	})
}
