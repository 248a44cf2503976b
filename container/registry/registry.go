// Package registry asks the registries of container images, and says why one of them did not serve a request.
package registry

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchgraph/benchgraph/container/login"
)

// AnswerTime limits one request, including authentication and redirects.
const AnswerTime = 30 * time.Second

// MaxAfter limits the pause that a registry may ask for.
const MaxAfter = 2 * time.Minute

// Limits of answers, which are foreign data.
const (
	maxManifest = 8 << 20 // bytes of an answer
	maxLayers   = 1000
)

// Client asks registries as one container engine does.
type Client struct {
	OS, Arch, Variant string                 // platform of the engine, in the words of Go
	Insecure          func(host string) bool // reports whether the engine uses plain HTTP with a registry
	Environ           map[string]string      // for credentials
	Patience          time.Duration          // for one answer; 0: AnswerTime
}

// Manifest is a registry's description of an image for one platform.
type Manifest struct {
	Digest string           // "sha256:..." of the reference: of the index if there is one
	Sizes  map[string]int64 // digest of each layer -> bytes, compressed
	Total  int64            // compressed bytes of all layers
	Env    []string         // NAME=value, of its configuration; nil: not requested, or unreadable
}

// Manifest returns the manifest of a tag or a digest. With config, it also reads the variables of the configuration; it
// ignores an unreadable configuration. Errors are *Error, or the cause of ctx.
func (c Client) Manifest(ctx context.Context, ref reference.Named, config bool) (Manifest, error) {
	host := reference.Domain(ref)
	var options []name.Option
	if c.Insecure(host) {
		options = append(options, name.Insecure)
	}
	remoteRef, err := name.ParseReference(ref.String(), options...)
	if err != nil {
		return Manifest{}, err
	}
	l, err := login.Find(ctx, c.Environ, host)
	if err != nil {
		return Manifest{}, err
	}
	patience := cmp.Or(c.Patience, AnswerTime)
	within, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	t := newRoundTripper(c.Insecure)
	defer t.transport.CloseIdleConnections()
	desc, err := remote.Get(remoteRef,
		remote.WithContext(within),
		remote.WithTransport(t),
		remote.WithAuth(l.Authenticator()),
		remote.WithPlatform(v1.Platform{OS: c.OS, Architecture: c.Arch, Variant: c.Variant}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes())
	if err != nil {
		return Manifest{}, refusal(within, ref, l, t, err)
	}
	img, err := desc.Image()
	var m *v1.Manifest
	if err == nil {
		m, err = img.Manifest()
	}
	if err != nil {
		return Manifest{}, refusal(within, ref, l, t, err)
	}
	out := Manifest{Digest: desc.Digest.String(), Sizes: map[string]int64{}}
	for i, l := range m.Layers {
		if i >= maxLayers || l.Size < 0 || l.Size > math.MaxInt64-out.Total {
			return Manifest{}, &Error{Ref: reference.FamiliarString(ref), Host: host, Reason: Damaged,
				Detail: "its manifest makes no sense"}
		}
		out.Sizes[l.Digest.String()] = l.Size
		out.Total += l.Size
	}
	if config {
		if file, err := img.ConfigFile(); err == nil {
			out.Env = file.Config.Env
		}
	}
	return out, nil
}

// roundTripper makes the requests for one manifest. It limits answers, and refuses redirects that would leak
// credentials.
type roundTripper struct {
	insecure  func(host string) bool // plain HTTP is allowed
	transport *http.Transport

	mu      sync.Mutex
	reached bool          // a server answered
	after   time.Duration // value of the last Retry-After
}

func newRoundTripper(insecure func(host string) bool) *roundTripper {
	return &roundTripper{insecure: insecure, transport: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}}
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !t.insecure(req.URL.Hostname()) {
		return nil, &plainError{req.URL.Host}
	}
	resp, err := t.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.reached = true
	t.after = retryAfter(resp.Header.Get("Retry-After"))
	t.mu.Unlock()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxManifest), resp.Body}
	return resp, nil
}

// retryAfter parses seconds or a date.
func retryAfter(value string) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, MaxAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, time.Until(at)), MaxAfter)
	}
	return 0
}
