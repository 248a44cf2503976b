package shell

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/head"
	"github.com/benchgraph/benchgraph/metrics/counters"
)

// Limits for a page of a server: the server may be hostile, and no measurement needs the page.
const (
	longestPage = 4 << 20
	pageTimeout = 2 * time.Second
)

// pageShell prints a page with the programs of the image; its arguments are port and path.
const pageShell = `unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
has() { command -v "$1" >/dev/null 2>&1; }
if has python3; then exec python3 -I -c 'import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=2)
c.request("GET", sys.argv[2])
r = c.getresponse()
sys.stdout.buffer.write(r.read((1 << 22) + 1) if r.status == 200 else b"")' "$1" "$2"; fi
has curl && curl -sf -m 2 "http://127.0.0.1:$1$2" && exit
has wget && wget -q -T 2 -O - "http://127.0.0.1:$1$2" && exit
has nc && has sed && printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$2" | nc -w 2 127.0.0.1 "$1" | sed '1,/^.\{0,1\}$/d'`

// Counted returns the counters of a server; nil if there is no server, or it has none that are known.
func (s *Server) Counted(ctx context.Context) counters.Counters {
	if s == nil {
		return nil
	}
	return counters.Read(s.page(ctx, "/metrics"))
}

// page returns a page of a server with an HTTP ready check; nil if the server has none or is late, or the page is
// longer than 4 MiB. Redirections are not followed.
func (s *Server) page(ctx context.Context, path string) []byte {
	if s.spec.HTTP == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	port := s.sh.vars["PORT"]
	if s.sh.box != nil {
		page := head.Buffer{Most: longestPage + 1}
		status, err := s.within(ctx, []string{"sh", "-c", pageShell, "page", port, path}, &page)
		if err != nil || !status.OK() || len(page.Bytes()) > longestPage {
			return nil
		}
		return page.Bytes()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", port)+path, nil)
	if err != nil {
		return nil
	}
	client := *s.client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	page, err := fs.ReadAll(resp.Body, longestPage)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return page
}
