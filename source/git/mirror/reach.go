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
	reachTime     = 10 * time.Second // time limit of a connection to the host of a repository
	reachAttempts = 2                // number of attempts to connect
	retryTime     = 30 * time.Second // after this time, a failed fetch is not retried: a user waits for the plan
)

// reach tries to connect to the host of the repository. Git itself would wait minutes for a silent host. It tries
// nothing behind a proxy, or over ssh, where the user's configuration may define host names.
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

// address returns the host and the port to which git connects; empty if that is not known.
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
