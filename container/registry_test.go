package container_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/container/registry"
)

// serve stands for a registry that is up to something.
func serve(t *testing.T, handler http.HandlerFunc) (host string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.Listener.Addr().String()
}

// Whatever a registry answers, it is told in one printable line of bounded length, soon, and nobody else is asked.
func TestResolveWithAHostileRegistry(t *testing.T) {
	t.Parallel()
	shared := containertest.Engine(t)
	var elsewhere atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	manifest := func(layers string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return
			}
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
			fmt.Fprintf(w,
				`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",`+
					`"config":{"mediaType":"application/vnd.docker.container.image.v1+json","size":2,`+
					`"digest":"sha256:%064d"},"layers":[%s]}`,
				1, layers)
		}
	}
	layer := func(n int, size string) string {
		return fmt.Sprintf(`{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","size":%s,`+
			`"digest":"sha256:%064d"}`, size, n)
	}
	many := make([]string, 2000)
	for i := range many {
		many[i] = layer(i, "1")
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		reason  registry.Reason
	}{
		"tokens from elsewhere": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+other+`/token",service="s"`)
			w.WriteHeader(401)
		}, registry.Untrusted},
		"leads elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") {
				http.Redirect(w, r, "http://[::ffff:127.0.0.1]:1/", http.StatusTemporaryRedirect)
			}
		}, registry.Untrusted},
		"never ends": {func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20))
				}
			}
		}, registry.Failing},
		"terminal": {status(403, "DENIED\x1b[2J", "X", "y"), registry.Denied},
		"no manifest": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html>\x1b[31mlogin")
		}, registry.Failing},
		"negative": {manifest(layer(1, "-5")), registry.Damaged},
		"too large": {manifest(layer(1, "9223372036854775807") + "," + layer(2, "9223372036854775807")),
			registry.Damaged},
		"too many layers": {manifest(strings.Join(many, ",")), registry.Damaged},
		"silent":          {hang, registry.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, shared, nil)
			pin, err := e.Resolve(t.Context(), serve(t, c.handler)+"/some/image:v1")
			refused, ok := errors.AsType[*registry.Error](err)
			if !ok || refused.Reason != c.reason {
				t.Fatalf("%+v, %v", pin, err)
			}
			if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\x1b\n") {
				t.Errorf("%q", text)
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhere.Load(); n > 0 {
			t.Errorf("%d requests to somebody else", n)
		}
	})
}

// Only an engine's own insecure registries are spoken to without TLS.
func TestResolveKeepsToTLS(t *testing.T) {
	t.Parallel()
	shared := containertest.Engine(t)
	var plain atomic.Int32
	host := ""
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsPrivate() && ip.IP.To4() != nil {
			l, err := net.Listen("tcp", ip.IP.String()+":0")
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				plain.Add(1)
			})}
			go server.Serve(l)
			t.Cleanup(func() { server.Close() })
			host = l.Addr().String()
			break
		}
	}
	if host == "" {
		t.Skip("this machine has no private address")
	}
	_, err = open(t, shared, nil).Resolve(t.Context(), host+"/some/image")
	if refused, ok := errors.AsType[*registry.Error](err); !ok || refused.Reason != registry.Untrusted ||
		!strings.Contains(err.Error(), "plain HTTP") {
		t.Error(err)
	}
	if n := plain.Load(); n > 0 {
		t.Errorf("%d requests without TLS", n)
	}
}
