package docker

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/system"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Reason says why a registry was of no use.
type Reason string

const (
	Denied      Reason = "denied"      // it wants other credentials
	Missing     Reason = "missing"     // it has no such image, or none for this platform
	Throttled   Reason = "throttled"   // it was asked too often
	Failing     Reason = "failing"     // it broke off, or has a fault of its own
	Unreachable Reason = "unreachable" // there is no way to it
	Damaged     Reason = "damaged"     // what it sent is not what its digest says
	Untrusted   Reason = "untrusted"   // it does not prove who it is, or is no registry that images are taken from
)

// RegistryError says why an image could not be had from a registry, or not be brought to it.
type RegistryError struct {
	Ref    string // as it was asked for
	Host   string // of the registry, with its port
	Reason Reason
	Detail string        // one printable line
	Remedy string        // what the user can do; may be empty
	After  time.Duration // the registry asks not to be asked again for so long; 0: it does not say

	silent bool // the engine still waits for an answer: another attempt would wait for the same one
}

func (e *RegistryError) Error() string {
	text := fmt.Sprintf("%s: the registry %s %s", e.Ref, e.Host, map[Reason]string{
		Denied: "does not let us", Missing: "does not have it", Throttled: "was asked too often", Failing: "failed",
		Unreachable: "cannot be reached", Damaged: "sent something else than was asked for", Untrusted: "is not trusted",
	}[e.Reason])
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Passing says whether it may go well when tried again later.
func (e *RegistryError) Passing() bool {
	return e.Reason == Throttled || e.Reason == Failing || e.Reason == Unreachable
}

// What a registry may send and how long it may take. Its answers are the work of strangers.
const (
	maxManifest   = 8 << 20 // bytes of one answer
	maxLayers     = 1000
	maxDetail     = 300 // bytes of what is shown of its words
	maxPause      = 2 * time.Minute
	answerTime    = 30 * time.Second // for one question, with all that belongs to it
	firstPause    = time.Second      // before the second attempt, doubled before each further one
	maxAttempts   = 100              // in all
	maxConfigSize = 1 << 20
)

// manifest is what a registry says of an image for one platform.
type manifest struct {
	digest string           // "sha256:..." of what the reference names: an index where there is one
	sizes  map[string]int64 // digest of each layer -> bytes, compressed
	total  int64            // bytes of all layers, compressed
}

// ask brings the manifest of an image from its registry. ref names a tag or a digest.
func (e *Engine) ask(ctx context.Context, ref reference.Named, p platform) (manifest, error) {
	host := reference.Domain(ref)
	var options []name.Option
	if p.insecure(host) {
		options = append(options, name.Insecure)
	}
	remoteRef, err := name.ParseReference(ref.String(), options...)
	if err != nil {
		return manifest{}, err
	}
	login, err := e.login(host)
	if err != nil {
		return manifest{}, err
	}
	patience := cmp.Or(e.options.Patience, answerTime)
	within, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	door := newDoor(p.insecure)
	defer door.close()
	auth := authn.Anonymous
	if login.AuthConfig != (authn.AuthConfig{}) {
		auth = authn.FromConfig(login.AuthConfig)
	}
	desc, err := remote.Get(remoteRef,
		remote.WithContext(within),
		remote.WithTransport(door),
		remote.WithAuth(auth),
		remote.WithPlatform(v1.Platform{OS: p.os, Architecture: p.arch, Variant: p.variant}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes())
	if err != nil {
		return manifest{}, registryError(within, ref, login, door, err)
	}
	img, err := desc.Image()
	var m *v1.Manifest
	if err == nil {
		m, err = img.Manifest()
	}
	if err != nil {
		return manifest{}, registryError(within, ref, login, door, err)
	}
	out := manifest{digest: desc.Digest.String(), sizes: map[string]int64{}}
	for i, l := range m.Layers {
		if i >= maxLayers || l.Size < 0 || l.Size > math.MaxInt64-out.total {
			return manifest{}, &RegistryError{Ref: reference.FamiliarString(ref), Host: host, Reason: Damaged, Detail: "its manifest makes no sense"}
		}
		out.sizes[l.Digest.String()] = l.Size
		out.total += l.Size
	}
	return out, nil
}

// registryError says what an error on the way to a registry means.
func registryError(ctx context.Context, ref reference.Named, l login, d *door, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != context.DeadlineExceeded {
		return fmt.Errorf("%s: %w", reference.FamiliarString(ref), cause)
	}
	d.mu.Lock() // a question that lost the race to the answer may still be under way
	reached, after := d.reached, d.after
	d.mu.Unlock()
	out := &RegistryError{Ref: reference.FamiliarString(ref), Host: reference.Domain(ref), After: after}
	said, answered := errors.AsType[*transport.Error](err)
	badCertificate, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[*plainError](err)
	text := err.Error()
	switch {
	case answered:
		out.Reason, text = ofStatus(said.StatusCode), statusText(said)
	case untrusted:
		out.Reason, text = Untrusted, badCertificate.Error()
	case ctx.Err() != nil && reached:
		out.Reason, text = Failing, context.Cause(ctx).Error()
	case ctx.Err() != nil:
		out.Reason, text = Unreachable, context.Cause(ctx).Error()
	case plain:
		out.Reason, text = Untrusted, err.Error()
	case strings.Contains(text, "does not match requested digest"):
		out.Reason = Damaged
	case containsAny(text, "invalid realm", "SSRF protection", "refusing token-server"):
		out.Reason = Untrusted // it leads to a machine that is none of its own
	case strings.Contains(text, "no child with platform"):
		out.Reason, text = Missing, "not for this platform"
	case reached:
		// It speaks, but what it says cannot be read: an answer that is broken off or no manifest at all.
		out.Reason = Failing
	default:
		out.Reason, text = Unreachable, innermost(err)
	}
	out.Detail = shown(text)
	out.Remedy = remedy(out, l)
	return out
}

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// ofStatus is the reason that an HTTP status stands for.
func ofStatus(status int) Reason {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Denied
	case status == http.StatusTooManyRequests:
		return Throttled
	case status == http.StatusRequestTimeout || status >= 500:
		return Failing
	}
	return Missing
}

// statusText leaves the request's URL out: it says nothing that the reference does not.
func statusText(said *transport.Error) string {
	text := fmt.Sprintf("%d %s", said.StatusCode, http.StatusText(said.StatusCode))
	if len(said.Errors) > 0 && said.Errors[0].Message != "" {
		text += " (" + said.Errors[0].Message + ")"
	}
	return text
}

// innermost is the error at the bottom: "connection refused" rather than which functions it came through.
func innermost(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}

// shown makes a stranger's words fit to be shown. Of many it keeps the first and the last, which say most.
func shown(text string) string {
	if n := len(text); n > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail/2], "") + " ... " + strings.ToValidUTF8(text[n-maxDetail/2:], "")
	}
	return printable.Line(text)
}

// remedy is what the user can do.
func remedy(e *RegistryError, l login) string {
	switch {
	case e.Reason == Denied && l.helper != "":
		return fmt.Sprintf("%s leaves the credentials of this registry to docker-credential-%s, which is not run; put them into \"auths\" of a config.json of their own and set DOCKER_CONFIG to its directory", l.file, printable.Line(l.helper))
	case e.Reason == Denied && l.file == "":
		return "docker login " + e.Host
	case e.Reason == Denied:
		return "docker login " + e.Host + " with an account that may (credentials are taken from " + l.file + ")"
	case e.Reason == Missing:
		return "look for a mistake in the name or the tag; some registries say so, too, when credentials are missing (docker login " + e.Host + ")"
	case e.Reason == Throttled:
		return "docker login " + e.Host + " often raises the limit"
	case e.Reason == Unreachable:
		return "is this machine offline, or is a proxy missing (HTTPS_PROXY)? An image that the engine has needs no registry"
	}
	return ""
}

// door is the one way to registries. It bounds what they send and refuses what would give credentials away.
type door struct {
	insecure  func(host string) bool // plain HTTP will do
	transport *http.Transport

	mu      sync.Mutex
	reached bool          // something answered
	after   time.Duration // of the last Retry-After
}

// plainError says that a registry that must prove who it is was to be spoken to without.
type plainError struct{ host string }

func (e *plainError) Error() string {
	return "plain HTTP to " + e.host + " is refused, as it is not among the engine's insecure registries"
}

// newDoor returns the door for one question; it is closed when that is answered.
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

// retryAfter reads seconds or a date.
func retryAfter(value string) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxPause)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, time.Until(at)), maxPause)
	}
	return 0
}

// platform is what an engine runs, and whom it trusts.
type platform struct {
	os, arch, variant string
	insecure          func(host string) bool // it speaks plain HTTP with this registry
}

// platform asks the engine. It names architectures as the kernel does, images name them as Go does.
func (e *Engine) platform(ctx context.Context) (platform, error) {
	info, err := call(ctx, e, "ask the container engine who it is", func(ctx context.Context, a *api) (system.Info, error) {
		return a.Info(ctx)
	})
	if err != nil {
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
		if bare == "localhost" {
			return true
		}
		if ip, err := netip.ParseAddr(strings.Trim(bare, "[]")); err == nil && ip.IsLoopback() {
			return true
		}
		if info.RegistryConfig == nil {
			return false
		}
		if index := info.RegistryConfig.IndexConfigs[host]; index != nil && !index.Secure {
			return true
		}
		ip := net.ParseIP(bare)
		return ip != nil && slices.ContainsFunc(info.RegistryConfig.InsecureRegistryCIDRs, func(n *registry.NetIPNet) bool {
			return n != nil && (*net.IPNet)(n).Contains(ip)
		})
	}
	return p, nil
}

// login is what is known of a registry's credentials.
type login struct {
	authn.AuthConfig
	file   string // that they come from; empty: there is none
	helper string // docker-credential-NAME that would know them; it is not run
}

// hub are the names of the one registry that has many.
var hub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// login reads the credentials of a registry from Docker's config.json.
func (e *Engine) login(host string) (login, error) {
	dir := e.options.Environ["DOCKER_CONFIG"]
	if dir == "" {
		if dir = e.options.Environ["HOME"]; dir == "" {
			return login{}, nil
		}
		dir = filepath.Join(dir, ".docker")
	}
	file := filepath.Join(dir, "config.json")
	text, err := readBounded(file, maxConfigSize)
	if errors.Is(err, os.ErrNotExist) {
		return login{}, nil
	}
	if err != nil {
		return login{}, err
	}
	var config struct {
		Auths       map[string]authn.AuthConfig `json:"auths"`
		CredsStore  string                      `json:"credsStore"`
		CredHelpers map[string]string           `json:"credHelpers"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		// The error may quote what is secret.
		return login{}, fmt.Errorf("%s: not the JSON that docker login writes", file)
	}
	out := login{file: file}
	for key, auth := range config.Auths {
		if sameRegistry(key, host) && auth != (authn.AuthConfig{}) {
			out.AuthConfig = auth
			return out, nil
		}
	}
	out.helper = config.CredsStore
	for key, helper := range config.CredHelpers {
		if sameRegistry(key, host) {
			out.helper = helper
		}
	}
	return out, nil
}

// sameRegistry compares a key of config.json, which may be a URL, with the host in a reference.
func sameRegistry(key, host string) bool {
	_, after, ok := strings.Cut(key, "://")
	if !ok {
		after = key
	}
	key, _, _ = strings.Cut(after, "/")
	return key == host || slices.Contains(hub, key) && slices.Contains(hub, host)
}

// readBounded reads a small file.
func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: over %d bytes", file, limit)
	}
	return text, err
}

// header is the credentials of ref's registry as the engine wants them.
func (l login) header(host string) (string, error) {
	if l.AuthConfig == (authn.AuthConfig{}) {
		return "", nil
	}
	if host == hub[0] {
		host = "https://index.docker.io/v1/"
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken, ServerAddress: host,
	})
}

// retry calls attempt until it succeeds, fails for good, or has brought nothing too often. Before each pause, waiting is told
// why there is one.
func (e *Engine) retry(ctx context.Context, idle int, attempt func(context.Context) (progress bool, err error), waiting func(cause error)) error {
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

// passes says whether an error may pass, and how long the other side wants to be left alone.
func passes(err error) (after time.Duration, ok bool) {
	if r, ok := errors.AsType[*RegistryError](err); ok {
		return r.After, r.Passing() && !r.silent
	}
	return 0, Class(err) == cache.Transient || IsGone(err)
}
