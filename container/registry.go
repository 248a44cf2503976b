package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/system"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchgraph/benchgraph/container/login"
	"github.com/benchgraph/benchgraph/failure"
)

// Limits of registries' answers, which are foreign data.
const (
	maxManifest = 8 << 20 // bytes of an answer
	maxLayers   = 1000
	maxDetail   = 300 // bytes of a registry's message that are shown
	maxPause    = 2 * time.Minute
	answerTime  = 30 * time.Second // for one request, including authentication and redirects
	firstPause  = time.Second      // before the second attempt, doubled before each further one
	maxAttempts = 100              // total
)

// manifest is a registry's description of an image for one platform.
type manifest struct {
	digest string           // "sha256:..." of the reference: of the index if there is one
	sizes  map[string]int64 // digest of each layer -> bytes, compressed
	total  int64            // compressed bytes of all layers
	env    []string         // NAME=value, of its configuration; nil: not requested, or unreadable
}

// ask gets the manifest of an image from its registry. ref names a tag or a digest. With config, ask also reads the
// variables of the configuration; it ignores an unreadable configuration.
func (e *Engine) ask(ctx context.Context, ref reference.Named, p platform, config bool) (manifest, error) {
	host := reference.Domain(ref)
	var options []name.Option
	if p.insecure(host) {
		options = append(options, name.Insecure)
	}
	remoteRef, err := name.ParseReference(ref.String(), options...)
	if err != nil {
		return manifest{}, err
	}
	l, err := login.Find(ctx, e.options.Environ, host)
	if err != nil {
		return manifest{}, err
	}
	patience := cmp.Or(e.options.Patience, answerTime)
	within, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	door := newDoor(p.insecure)
	defer door.close()
	desc, err := remote.Get(remoteRef,
		remote.WithContext(within),
		remote.WithTransport(door),
		remote.WithAuth(l.Authenticator()),
		remote.WithPlatform(v1.Platform{OS: p.os, Architecture: p.arch, Variant: p.variant}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes())
	if err != nil {
		return manifest{}, registryError(within, ref, l, door, err)
	}
	img, err := desc.Image()
	var m *v1.Manifest
	if err == nil {
		m, err = img.Manifest()
	}
	if err != nil {
		return manifest{}, registryError(within, ref, l, door, err)
	}
	out := manifest{digest: desc.Digest.String(), sizes: map[string]int64{}}
	for i, l := range m.Layers {
		if i >= maxLayers || l.Size < 0 || l.Size > math.MaxInt64-out.total {
			return manifest{}, &RegistryError{Ref: reference.FamiliarString(ref), Host: host, Reason: Damaged,
				Detail: "its manifest makes no sense"}
		}
		out.sizes[l.Digest.String()] = l.Size
		out.total += l.Size
	}
	if config {
		if c, err := img.ConfigFile(); err == nil {
			out.env = c.Config.Env
		}
	}
	return out, nil
}

// door is the HTTP transport for registries. It limits answers and refuses redirects that would leak credentials.
type door struct {
	insecure  func(host string) bool // plain HTTP is allowed
	transport *http.Transport

	mu      sync.Mutex
	reached bool          // a server answered
	after   time.Duration // value of the last Retry-After
}

// newDoor returns the door for one request. The caller closes it after the answer.
func newDoor(insecure func(host string) bool) *door {
	return &door{insecure: insecure, transport: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}}
}

func (d *door) close() { d.transport.CloseIdleConnections() }

func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !d.insecure(req.URL.Hostname()) {
		return nil, &plainError{req.URL.Host}
	}
	resp, err := d.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.reached = true
	d.after = retryAfter(resp.Header.Get("Retry-After"))
	d.mu.Unlock()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxManifest), resp.Body}
	return resp, nil
}

// retryAfter parses seconds or a date.
func retryAfter(value string) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxPause)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, time.Until(at)), maxPause)
	}
	return 0
}

// platform is what an engine runs, and which registries it trusts.
type platform struct {
	os, arch, variant string
	insecure          func(host string) bool // whether it uses plain HTTP with a registry
}

// platform asks the engine. It converts the kernel's names of architectures, which engines use, to Go's, which images
// use. Without an engine, it returns this machine's platform.
func (e *Engine) platform(ctx context.Context) (platform, error) {
	info, err := call(ctx, e, "ask the container engine who it is",
		func(ctx context.Context, a *api) (system.Info, error) {
			return a.Info(ctx)
		})
	if _, away := errors.AsType[*Unavailable](err); away {
		info.OSType, info.Architecture = "linux", runtime.GOARCH
	} else if err != nil {
		return platform{}, err
	}
	p := platform{os: info.OSType, arch: info.Architecture}
	switch p.arch {
	case "x86_64":
		p.arch = "amd64"
	case "aarch64":
		p.arch = "arm64"
	case "armv7l":
		p.arch, p.variant = "arm", "v7"
	case "i686":
		p.arch = "386"
	}
	p.insecure = func(host string) bool {
		bare := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			bare = h
		}
		if at, err := netip.ParseAddr(strings.Trim(bare, "[]")); bare == "localhost" || err == nil && at.IsLoopback() {
			return true
		}
		if info.RegistryConfig == nil {
			return false
		}
		if index := info.RegistryConfig.IndexConfigs[host]; index != nil && !index.Secure {
			return true
		}
		ip := net.ParseIP(bare)
		return ip != nil && slices.ContainsFunc(info.RegistryConfig.InsecureRegistryCIDRs,
			func(n *registry.NetIPNet) bool { return n != nil && (*net.IPNet)(n).Contains(ip) })
	}
	return p, nil
}

// retry calls attempt until it succeeds, fails permanently, or makes no progress idle times in a row. Before each
// pause, it calls waiting with the cause.
func (e *Engine) retry(ctx context.Context, idle int, attempt func(context.Context) (progress bool, err error),
	waiting func(cause error)) error {
	pause, failed := cmp.Or(e.options.Pause, firstPause), 0
	for n := 1; ; n++ {
		progress, err := attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		after, passing := passes(err)
		if failed++; progress {
			pause, failed = cmp.Or(e.options.Pause, firstPause), 0
		}
		if !passing || failed >= idle || n >= maxAttempts {
			return err
		}
		wait := min(max(pause+rand.N(pause/4+1), after), maxPause)
		pause *= 2
		waiting(err)
		if IsGone(err) {
			_ = e.Persist(ctx, func() error { return e.Ping(ctx) }) // it may be back soon
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// passes reports whether an error is temporary, and how long the other side asks to wait.
func passes(err error) (after time.Duration, ok bool) {
	if r, ok := errors.AsType[*RegistryError](err); ok {
		return r.After, r.Passing() && !r.silent
	}
	return 0, Class(err) == failure.Transient || IsGone(err)
}
