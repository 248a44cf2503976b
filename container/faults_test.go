package container_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/benchgraph/benchgraph/container/containertest"
)

// faults stands in front of a registry and spoils answers.
type faults struct {
	Host  string // of the proxy: "127.0.0.1:PORT"
	proxy *httputil.ReverseProxy

	mu    sync.Mutex
	spoil func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	seen  []string                                          // "GET /v2/...", in order
}

// newFaults starts a proxy before a registry of the test's own.
func newFaults(t *testing.T) *faults {
	t.Helper()
	behind := containertest.NewRegistry(t)
	target := &url.URL{Scheme: "http", Host: behind.Host}
	f := &faults{proxy: &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host // redirects and upload locations lead back to the proxy
		},
		FlushInterval: -1,
		ErrorLog:      quiet,
	}}
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(func() {
		f.set(nil) // the engine asks again when a connection breaks, and Close waits for the answer
		server.CloseClientConnections()
		server.Close()
	})
	f.Host = server.Listener.Addr().String()
	return f
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Method+" "+r.URL.Path)
	spoil := f.spoil
	f.mu.Unlock()
	if spoil != nil && spoil(w, r) {
		return
	}
	f.proxy.ServeHTTP(w, r)
}

// set says what is spoilt from now on, and forgets what was seen.
func (f *faults) set(spoil func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoil, f.seen = spoil, nil
}

// count says how many requests were seen whose text has all words.
func (f *faults) count(words ...string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.seen {
		has := true
		for _, w := range words {
			has = has && strings.Contains(s, w)
		}
		if has {
			n++
		}
	}
	return n
}

// times lets a fault happen n times for the requests whose text has all words.
func times(n int, words []string, fault func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter,
	*http.Request) bool {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) bool {
		for _, word := range words {
			if !strings.Contains(r.Method+" "+r.URL.Path, word) {
				return false
			}
		}
		mu.Lock()
		n--
		now := n >= 0
		mu.Unlock()
		if now {
			fault(w, r)
		}
		return now
	}
}

const always = 1 << 30

// status answers with an error as registries write them.
func status(code int, name string, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		// containerd's store passes on the message alone
		fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"%s, as the test wants it"}]}`, name,
			strings.ToLower(strings.ReplaceAll(name, "_", " ")))
	}
}

// breakOff sends part of the answer and then nothing more.
func (f *faults) breakOff(part int64) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		f.proxy.ServeHTTP(&cut{ResponseWriter: w, left: part}, r)
	}
}

// cut lets only so many bytes of a body through and then breaks the connection.
type cut struct {
	http.ResponseWriter
	left int64
}

func (c *cut) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// other answers with the right headers and another content of the same length.
func (f *faults) other(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	f.proxy.ServeHTTP(rec, r)
	body, _ := io.ReadAll(rec.Body)
	for i, c := range body {
		if c == '1' { // still JSON where it was
			body[i] = '2'
		}
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(body)
}

// hang answers nothing until the other side gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
