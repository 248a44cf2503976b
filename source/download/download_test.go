package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

var content = bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// server serves by one handler for each request in turn; the last one stays.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	handlers []http.HandlerFunc
	asked    []*http.Request
}

func serve(t testing.TB, handlers ...http.HandlerFunc) *server {
	s := &server{handlers: handlers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		h := s.handlers[min(len(s.asked), len(s.handlers)-1)]
		s.asked = append(s.asked, r.Clone(r.Context()))
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// ranges are the Range headers of the requests so far.
func (s *server) ranges() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, r := range s.asked {
		got = append(got, r.Header.Get("Range"))
	}
	return got
}

// file serves data with its tag, as a proper server does.
func file(tag string, data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// breaks serves like h and breaks the connection off after n bytes of the body.
func breaks(n int, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h(&breaking{ResponseWriter: w, left: n}, r)
		panic(http.ErrAbortHandler)
	}
}

type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.ResponseWriter.Write(p[:n])
	if n < len(p) {
		http.NewResponseController(b.ResponseWriter).Flush()
		return n, io.ErrShortWrite
	}
	return n, nil
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
}

// ignoresRange serves the whole file whatever is asked for.
func ignoresRange(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		h(w, r)
	}
}

func options(t testing.TB, url string) Options {
	return Options{URL: url, Dest: filepath.Join(t.TempDir(), "file"), Backoff: time.Microsecond,
		SHA256: sumOf(content)}
}

// leaves checks that nothing but the named files lies where the destination is.
func leaves(t testing.TB, o Options, want ...string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(o.Dest))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}

func TestAFileArrivesWhateverHappensOnTheWay(t *testing.T) {
	good := file(`"v1"`, content)
	older := file(`"v0"`, bytes.Repeat([]byte("x"), len(content)))
	shrunk := file(`"v0"`, content[:1000])
	lies := func(w http.ResponseWriter, r *http.Request) { // announces more than it has
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:300_000])
	}
	chunked := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		w.Write(content)
	}
	wrongRange := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 5-%d/%d", len(content)-1, len(content)))
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(content[5:])
	}
	ignoresIfRange := func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Range")
		good(w, r)
	}
	weak := file(`W/"v1"`, content)
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		ranges   []string
	}{
		"at once": {[]http.HandlerFunc{good}, []string{""}},
		"in pieces": {[]http.HandlerFunc{breaks(100_000, good), breaks(200_000, good), good},
			[]string{"", "bytes=100000-", "bytes=300000-"}},
		"without ranges": {[]http.HandlerFunc{breaks(100_000, good), ignoresRange(good)},
			[]string{"", "bytes=100000-"}},
		"of another version": {[]http.HandlerFunc{breaks(100_000, older), good}, []string{"", "bytes=100000-"}},
		"without If-Range": {[]http.HandlerFunc{breaks(100_000, older), ignoresIfRange, good},
			[]string{"", "bytes=100000-", ""}},
		"longer than before": {[]http.HandlerFunc{breaks(900, shrunk), good}, []string{"", "bytes=900-"}},
		"after 416": {[]http.HandlerFunc{breaks(100_000, good), status(416), good},
			[]string{"", "bytes=100000-", ""}},
		"after a wrong range": {[]http.HandlerFunc{breaks(100_000, good), wrongRange, good},
			[]string{"", "bytes=100000-", ""}},
		"after a short body": {[]http.HandlerFunc{lies, good}, []string{"", "bytes=300000-"}},
		"without a tag": {[]http.HandlerFunc{breaks(100_000, file("", content)), file("", content)},
			[]string{"", ""}},
		"with a weak tag":   {[]http.HandlerFunc{breaks(100_000, weak), weak}, []string{"", ""}},
		"of unknown length": {[]http.HandlerFunc{chunked}, []string{""}},
		"after a busy server": {[]http.HandlerFunc{status(503), status(429), status(500), good},
			[]string{"", "", "", ""}},
		"after a broken start": {[]http.HandlerFunc{breaks(0, good), good}, []string{"", ""}},
		"in very many pieces": {[]http.HandlerFunc{breaks(150_000, good)},
			[]string{"", "bytes=150000-", "bytes=300000-", "bytes=450000-", "bytes=600000-", "bytes=750000-",
				"bytes=900000-"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.handlers...)
			o := options(t, s.URL)
			var last, total int64
			o.Progress = func(done, all int64) { last, total = done, all }
			info, err := Get(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(o.Dest)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if info.SHA256 != sumOf(content) || info.Size != int64(len(content)) || last != info.Size ||
				total != info.Size && total != -1 {
				t.Errorf("%+v, progress %d of %d", info, last, total)
			}
			if got := s.ranges(); !slices.Equal(got, c.ranges) {
				t.Errorf("asked for %q, want %q", got, c.ranges)
			}
			leaves(t, o, "file")
		})
	}
}

func TestAnotherProcessContinues(t *testing.T) {
	s := serve(t, breaks(100_000, file(`"v1"`, content)))
	o := options(t, s.URL)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	o.Progress = func(done, _ int64) {
		if done == 100_000 {
			cancel(why)
		}
	}
	if _, err := Get(ctx, o); !errors.Is(err, why) {
		t.Fatalf("%v", err)
	}
	leaves(t, o, "file.part", "file.part.json")
	o.Progress = nil
	s2 := serve(t, file(`"v1"`, content))
	o.URL = s2.URL
	if _, err := Get(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := s2.ranges(); !slices.Equal(got, []string{""}) {
		t.Errorf("what another URL sent was continued: %q", got)
	}
	// The same URL is continued, and a complete part is only checked.
	for _, have := range []int{100_000, len(content)} {
		o = options(t, s2.URL)
		write(t, o.Dest+".part", content[:have])
		write(t, o.Dest+".part.json", fmt.Appendf(nil, `{"url":%q,"validator":"\"v1\"","total":%d}`, identity(s2.URL),
			len(content)))
		if _, err := Get(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := s2.ranges(); got[len(got)-1] != fmt.Sprintf("bytes=%d-", have) {
			t.Errorf("asked for %q", got)
		}
	}
	// A damaged part is found out by its hash and brought anew.
	o = options(t, s2.URL)
	write(t, o.Dest+".part", bytes.Repeat([]byte("x"), 5000))
	write(t, o.Dest+".part.json", fmt.Appendf(nil, `{"url":%q,"validator":"\"v1\"","total":%d}`, identity(s2.URL),
		len(content)))
	if _, err := Get(t.Context(), o); err != nil {
		t.Error(err)
	}
	// So is one whose note is damaged.
	o = options(t, s2.URL)
	write(t, o.Dest+".part", content[:10])
	write(t, o.Dest+".part.json", []byte("{"))
	if _, err := Get(t.Context(), o); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPermanentErrorsAreReturnedAtOnce(t *testing.T) {
	for _, code := range []int{401, 403, 404, 410, 501} {
		s := serve(t, status(code))
		o := options(t, s.URL)
		_, err := Get(t.Context(), o)
		if r, ok := errors.AsType[*Refused](err); !ok || r.Status != code || len(s.ranges()) != 1 {
			t.Errorf("%d: %v after %d requests", code, err, len(s.ranges()))
		}
		leaves(t, o)
	}
	s := serve(t, file(`"v1"`, []byte("something else")))
	o := options(t, s.URL)
	_, err := Get(t.Context(), o)
	if m, ok := errors.AsType[*Mismatch](err); !ok || m.Got != sumOf([]byte("something else")) ||
		m.Want != sumOf(content) {
		t.Errorf("mismatch: %v", err)
	}
	leaves(t, o)

	for name, h := range map[string]http.HandlerFunc{
		"announced":   file(`"v1"`, content),
		"unannounced": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); w.Write(content) },
	} {
		o = options(t, serve(t, h).URL)
		o.MaxSize = 1000
		_, err = Get(t.Context(), o)
		if _, ok := errors.AsType[*TooLarge](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		leaves(t, o)
	}

	o = options(t, "http://127.0.0.1/")
	o.SHA256 = "abc"
	if _, err := Get(t.Context(), o); err == nil || !strings.Contains(err.Error(), "64 hexadecimal digits") {
		t.Errorf("%v", err)
	}
	for _, url := range []string{"ftp://host/file", "file:///etc/passwd", "/etc/passwd", "relative", "http://%zz/"} {
		_, err := Get(t.Context(), options(t, url))
		if _, ok := errors.AsType[*Refused](err); !ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestTemporaryErrorsAreRetried(t *testing.T) {
	s := serve(t, breaks(100_000, file(`"v1"`, content)), status(503))
	o := options(t, s.URL)
	_, err := Get(t.Context(), o)
	u, ok := errors.AsType[*Unavailable](err)
	if !ok || u.Attempts != maxIdle+1 || !strings.Contains(err.Error(), "503 Service Unavailable (after 6 attempts)") {
		t.Errorf("%v", err)
	}
	leaves(t, o, "file.part", "file.part.json")

	closed := serve(t, status(200))
	closed.Close()
	_, err = Get(t.Context(), options(t, closed.URL))
	if _, ok := errors.AsType[*Unavailable](err); !ok || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}

func TestAServerThatFallsSilentIsLeft(t *testing.T) {
	silent := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:1000])
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-silent:
		}
	}, file(`"v1"`, content))
	defer close(silent)
	o := options(t, s.URL)
	o.Stall = 50 * time.Millisecond
	if _, err := Get(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	// On a busy machine the second answer may come too late as well, and is asked for again from the same place.
	if got := slices.Compact(s.ranges()); !slices.Equal(got, []string{"", "bytes=1000-"}) {
		t.Errorf("asked for %q", got)
	}
}

// A server that sends a byte now and then is left like a silent one; what it sent is kept.
func TestAServerThatDripsIsLeft(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		for r.Context().Err() == nil {
			w.Write(content[:1])
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	o := options(t, s.URL)
	o.Stall = 100 * time.Millisecond
	_, err := Get(t.Context(), o)
	if u, ok := errors.AsType[*Unavailable](err); !ok || u.Attempts != maxIdle ||
		!strings.Contains(err.Error(), "less than 1 KiB a second") ||
		!strings.Contains(err.Error(), s.Listener.Addr().String()) {
		t.Errorf("%v", err)
	}
	leaves(t, o, "file.part", "file.part.json")
}

// Two versions of the same second have the same date: without a digest nothing is continued on its word.
func TestADateDoesNotIdentifyAFile(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dated := func(data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", at, bytes.NewReader(data))
		}
	}
	older := bytes.Repeat([]byte("fedcba9876543210"), 64<<10)
	for name, tt := range map[string]struct {
		digest string
		asked  []string
	}{
		"without a digest": {asked: []string{"", ""}},
		"with its digest":  {digest: sumOf(content), asked: []string{"", "bytes=100000-", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, breaks(100_000, dated(older)), dated(content))
			o := options(t, s.URL)
			o.SHA256 = tt.digest
			if info, err := Get(t.Context(), o); err != nil || info.SHA256 != sumOf(content) {
				t.Errorf("%+v, %v", info, err)
			}
			if got := s.ranges(); !slices.Equal(got, tt.asked) {
				t.Errorf("asked for %q, want %q", got, tt.asked)
			}
		})
	}
}

func TestRedirectsAreFollowedWithinReason(t *testing.T) {
	target := serve(t, file(`"v1"`, content))
	once := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, http.StatusFound) })
	if _, err := Get(t.Context(), options(t, once.URL)); err != nil {
		t.Error(err)
	}
	circle := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	_, err := Get(t.Context(), options(t, circle.URL))
	if r, ok := errors.AsType[*Refused](err); !ok || !errors.Is(err, errRedirect) || r.Status != 0 ||
		len(circle.ranges()) > maxRedirects+1 {
		t.Errorf("%v after %d requests", err, len(circle.ranges()))
	}
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL, http.StatusFound)
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	o := options(t, secure.URL)
	o.Client = secure.Client()
	if _, err := Get(t.Context(), o); !errors.Is(err, errRedirect) {
		t.Errorf("from https to http: %v", err)
	}
	o.Client = nil // which does not know the server's certificate
	if _, err := Get(t.Context(), o); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown certificate: %v", err)
	} else if _, ok := errors.AsType[*Refused](err); !ok {
		t.Errorf("unknown certificate: %T", err)
	}
}

func TestHeadTellsSizeAndVersion(t *testing.T) {
	good := file(`"v1"`, content)
	want := Info{Size: int64(len(content)), ETag: `"v1"`, AcceptRanges: true}
	getOnly := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.WriteHeader(code)
				return
			}
			good(w, r)
		}
	}
	for name, h := range map[string]http.HandlerFunc{"HEAD": good, "not allowed": getOnly(405),
		"signed for GET": getOnly(403)} {
		if got, err := Head(t.Context(), Options{URL: serve(t, h).URL}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	s := serve(t, status(404))
	_, err := Head(t.Context(), Options{URL: s.URL + "/x?token=1"})
	if r, ok := errors.AsType[*Refused](err); !ok || r.Status != 404 || len(s.ranges()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.ranges()))
	}
}

func TestFilesOfThisMachine(t *testing.T) {
	source := filepath.Join(t.TempDir(), "a file")
	write(t, source, content)
	head := Options{URL: "file://" + filepath.ToSlash(source), AllowLocal: true}
	if got, err := Head(t.Context(), head); err != nil || got != (Info{Size: int64(len(content))}) {
		t.Errorf("Head: %+v, %v", got, err)
	}
	for _, o := range []Options{{URL: head.URL}, {URL: head.URL + "x", AllowLocal: true},
		{URL: filepath.Dir(source), AllowLocal: true}} {
		if _, err := Head(t.Context(), o); !errors.As(err, new(*Refused)) {
			t.Errorf("Head of %+v: %v", o, err)
		}
	}
	for _, url := range []string{source, "file://" + strings.ReplaceAll(source, " ", "%20")} {
		o := options(t, url)
		o.AllowLocal = true
		info, err := Get(t.Context(), o)
		got, _ := os.ReadFile(o.Dest)
		if err != nil || info.SHA256 != sumOf(content) || !bytes.Equal(got, content) {
			t.Errorf("%s: %+v, %v", url, info, err)
		}
		leaves(t, o, "file")
		o.SHA256 = sumOf(nil)
		o.Dest += "2"
		if _, err := Get(t.Context(), o); err == nil {
			t.Error("a mismatch was accepted")
		}
		leaves(t, o, "file")
	}
	for _, url := range []string{"file://other/x", source + "-missing", filepath.Dir(source), "relative/path"} {
		o := options(t, url)
		o.AllowLocal = true
		_, err := Get(t.Context(), o)
		if _, ok := errors.AsType[*Refused](err); !ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestServersSayWhenToComeBack(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "-1": 0, "x": 0,
		"999999999999": maxPause, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		if got := retryAfter(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// Wherever connections break, the file arrives whole and no byte that was kept is asked for again.
func TestBreaksAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(rt, "data")
		var handlers []http.HandlerFunc
		for range rapid.IntRange(0, 4).Draw(rt, "breaks") {
			handlers = append(handlers, breaks(rapid.IntRange(0, len(data)).Draw(rt, "after"), file(`"v"`, data)))
		}
		s := serve(t, append(handlers, file(`"v"`, data))...)
		o := options(t, s.URL)
		o.SHA256 = ""
		info, err := Get(t.Context(), o)
		got, _ := os.ReadFile(o.Dest)
		if err != nil || info.SHA256 != sumOf(data) || !bytes.Equal(got, data) {
			rt.Fatalf("%+v, %v", info, err)
		}
	})
}

func FuzzContentRange(f *testing.F) {
	for _, seed := range []string{"bytes 5-9/10", "bytes */10", "bytes 0-0/*", "bytes", "bytes -1-2/3", "items 1-2/3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		fuzzing.Frugal(t, len(value), func() {
			first, total, ok := contentRange(value)
			if ok && (first < -1 || total < -1) {
				t.Fatalf("%d of %d", first, total)
			}
			retryAfter(value)
		})
	})
}
