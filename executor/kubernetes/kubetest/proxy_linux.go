package kubetest

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// proxy is a proxy before the API server. It simulates network faults for single namespaces.
type proxy struct {
	*httptest.Server
	mu   sync.Mutex
	ways map[string]*way // by namespace
}

// way describes the connection of a namespace to the API server.
type way struct {
	silent bool
	lose   int            // number of Jobs whose creation still gets no answer
	made   bool           // those Jobs are created
	calls  map[string]int // by method and resource, such as POST jobs
}

// errCut cuts the connection instead of an answer.
var errCut = errors.New("the connection is cut")

// between starts a proxy before an API server; it ends with the test.
func (c *Cluster) between(server string) *proxy {
	c.t.Helper()
	to, err := url.Parse(server)
	c.must(err)
	p := &proxy{ways: map[string]*way{}}
	r := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:    &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		before, after := p.pass(req)
		if before {
			panic(http.ErrAbortHandler)
		}
		own := *r
		if after {
			own.ModifyResponse = func(*http.Response) error { return errCut }
		}
		own.ServeHTTP(w, req)
	}))
	c.t.Cleanup(p.Close)
	return p
}

// on calls do with the way of a namespace, which do may change.
func (p *proxy) on(namespace string, do func(*way)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ways[namespace] == nil {
		p.ways[namespace] = &way{calls: map[string]int{}}
	}
	do(p.ways[namespace])
}

// pass counts a request and reports whether its connection is cut before or after the API server handles it.
func (p *proxy) pass(r *http.Request) (before, after bool) {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, resource, _ := strings.Cut(path, "/")
	call := r.Method + " " + resource
	p.on(namespace, func(w *way) {
		w.calls[call]++
		if before = w.silent; call == "POST jobs" && w.lose > 0 {
			w.lose--
			before, after = !w.made, w.made
		}
	})
	return before, after
}

// Silence sets whether requests about a namespace get no answer.
func (c *Cluster) Silence(namespace string, silent bool) {
	c.proxy.on(namespace, func(w *way) { w.silent = silent })
}

// Lose makes the next requests to create a Job in a namespace end without an answer; made says whether the Jobs are
// created.
func (c *Cluster) Lose(namespace string, made bool, times int) {
	c.proxy.on(namespace, func(w *way) { w.made, w.lose = made, times })
}

// Calls returns how often a request came, such as "POST jobs".
func (c *Cluster) Calls(namespace, call string) (n int) {
	c.proxy.on(namespace, func(w *way) { n = w.calls[call] })
	return n
}
