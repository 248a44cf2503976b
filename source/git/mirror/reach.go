package mirror

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/failure"
)

const (
	reachTime     = 10 * time.Second // for a connection to the host of a repository
	reachAttempts = 2                // to connect, in all
	retryTime     = 30 * time.Second // after which a failed fetch is not tried again: somebody waits for a plan
)

// reach tries to connect to the host of the repository. Git itself would wait minutes for a host that does not answer.
// Behind a proxy, and over ssh, whose hosts may be names of the user's own, nothing is tried.
func (m *Mirror) reach(ctx context.Context) error {
	address := m.address()
	if address == "" {
		return nil
	}
	conn, err := (&net.Dialer{Timeout: reachTime}).DialContext(ctx, "tcp", address)
	if err == nil {
		return conn.Close()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &FetchError{Location: m.Shown, Class: failure.Transient, Evidence: err.Error(), Remedy: "check the network",
		Err: err}
}

// address is the host and the port that git connects to; empty when that is not known.
func (m *Mirror) address() string {
	u, err := url.Parse(m.url())
	if err != nil {
		return ""
	}
	port := map[string]string{"http": "80", "https": "443", "git": "9418"}[u.Scheme]
	if port == "" || u.Hostname() == "" || slices.ContainsFunc(m.Git.Env, proxy) {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// proxy reports whether a variable of the environment names a proxy.
func proxy(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return value != "" && slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}, strings.ToUpper(name))
}
