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

// proxy is between clients and the API server. It plays the faults of a network, for one namespace or another.
type proxy struct {
	*httptest.Server
	mu   sync.Mutex
	ways map[string]*way // by namespace
}

// way is how requests about a namespace get to the API server, and their answers back.
type way struct {
	silent bool
	lose   int            // how many Jobs are still to be made without an answer
	made   bool           // those are made
	calls  map[string]int // by method and resource, such as POST jobs
}

// errCut cuts the connection in the place of an answer.
var errCut = errors.New("the connection is cut")

// between starts a proxy before an API server, which ends with the test.
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

// on looks at the way of a namespace, or changes it.
func (p *proxy) on(namespace string, do func(*way)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ways[namespace] == nil {
		p.ways[namespace] = &way{calls: map[string]int{}}
	}
	do(p.ways[namespace])
}

// pass counts a request, and says whether its connection is cut before or after the API server carries it out.
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

// Silence says whether nobody who asks about a namespace gets an answer.
func (c *Cluster) Silence(namespace string, silent bool) {
	c.proxy.on(namespace, func(w *way) { w.silent = silent })
}

// Lose has the next requests to make a Job in a namespace end without an answer; made says whether Jobs are made.
func (c *Cluster) Lose(namespace string, made bool, times int) {
	c.proxy.on(namespace, func(w *way) { w.made, w.lose = made, times })
}

// Calls is how often a request came, such as "POST jobs".
func (c *Cluster) Calls(namespace, call string) (n int) {
	c.proxy.on(namespace, func(w *way) { n = w.calls[call] })
	return n
}
