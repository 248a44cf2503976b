package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/benchgraph/benchgraph/container/login"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Reason says why a registry did not serve a request.
type Reason string

const (
	Denied      Reason = "denied"      // it needs other credentials
	Missing     Reason = "missing"     // it has no such image, or none for this platform
	Throttled   Reason = "throttled"   // it got too many requests
	Failing     Reason = "failing"     // it broke off or has an internal error
	Unreachable Reason = "unreachable" // no connection
	Damaged     Reason = "damaged"     // its data does not match the digest
	Untrusted   Reason = "untrusted"   // it does not prove its identity, or may not be used
)

// Error is the error of a request to a registry, or of a transfer from or to one.
type Error struct {
	Ref    string // the requested reference
	Host   string // registry, with port
	Reason Reason
	Detail string        // one printable line
	Remedy string        // what the user can do; may be empty
	After  time.Duration // the registry's Retry-After; 0: none

	Stalled bool // the engine still waits for an answer: another attempt would wait for the same one
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: the registry %s %s", e.Ref, e.Host, map[Reason]string{
		Denied: "does not let us", Missing: "does not have it", Throttled: "was asked too often", Failing: "failed",
		Unreachable: "cannot be reached", Damaged: "sent something else than was asked for",
		Untrusted: "is not trusted",
	}[e.Reason])
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Passing reports whether a later attempt may succeed.
func (e *Error) Passing() bool {
	return e.Reason == Throttled || e.Reason == Failing || e.Reason == Unreachable
}

// refusal converts an error of a request. It returns the cause of ctx if that has ended, but not at its deadline.
func refusal(ctx context.Context, ref reference.Named, l login.Login, t *roundTripper, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != context.DeadlineExceeded {
		return fmt.Errorf("%s: %w", reference.FamiliarString(ref), cause)
	}
	t.mu.Lock() // a losing request may still be under way
	reached, after := t.reached, t.after
	t.mu.Unlock()
	out := &Error{Ref: reference.FamiliarString(ref), Host: reference.Domain(ref), After: after}
	said, answered := errors.AsType[*transport.Error](err)
	badCertificate, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[*plainError](err)
	text := err.Error()
	switch {
	case answered:
		out.Reason, text = reasonOf(said.StatusCode), statusText(said)
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
		out.Reason = Untrusted // it redirects to a foreign machine
	case strings.Contains(text, "no child with platform"):
		out.Reason, text = Missing, "not for this platform"
	case reached:
		// The answer is unreadable: truncated, or not a manifest.
		out.Reason = Failing
	default:
		out.Reason, text = Unreachable, innermost(err)
	}
	out.Detail = printable.Excerpt(text)
	out.Remedy = remedy(out, l)
	return out
}

// FromEngine returns the error for an engine's message about a transfer. Engines give only text.
func FromEngine(ref reference.Named, l login.Login, text string) *Error {
	out := &Error{Ref: reference.FamiliarString(ref), Host: reference.Domain(ref), Reason: Failing,
		Detail: printable.Excerpt(text)}
	has := func(words ...string) bool { return containsAny(text, words...) }
	switch {
	case has("verification failed", "unexpected commit digest", "failed size validation", "digest mismatch",
		"does not match"):
		out.Reason = Damaged
	case has("toomanyrequests", "too many requests", "429", "rate limit"):
		out.Reason = Throttled
	case has("content digest"): // containerd's store removed what an earlier attempt had left
	case has("unauthorized", "denied", "no basic auth credentials", "authentication required"):
		out.Reason = Denied
	case has("manifest unknown", "not found", "no matching manifest", "name unknown"):
		out.Reason = Missing
	case has("x509:", "http response to https client"):
		out.Reason = Untrusted
	case has("no such host", "connection refused", "network is unreachable", "no route to host", "i/o timeout",
		"awaiting headers"):
		out.Reason = Unreachable
	}
	out.Remedy = remedy(out, l)
	return out
}

// containsAny reports whether a text contains one of the words. Case does not matter.
func containsAny(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, strings.ToLower(w)) })
}

// reasonOf returns the reason for an HTTP status.
func reasonOf(status int) Reason {
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

// statusText describes an HTTP error without the request's URL, which the reference implies.
func statusText(said *transport.Error) string {
	text := fmt.Sprintf("%d %s", said.StatusCode, http.StatusText(said.StatusCode))
	if len(said.Errors) > 0 && said.Errors[0].Message != "" {
		text += " (" + said.Errors[0].Message + ")"
	}
	return text
}

// innermost returns the cause, such as "connection refused", without the functions that it passed through.
func innermost(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}

func remedy(e *Error, l login.Login) string {
	switch {
	case e.Reason == Denied && l.Helper != nil:
		return fmt.Sprintf("%s names a credential helper for this registry, which gave none (%s): docker login %s",
			l.File, printable.Excerpt(l.Helper.Error()), e.Host)
	case e.Reason == Denied && l.File == "":
		return "docker login " + e.Host
	case e.Reason == Denied:
		return "docker login " + e.Host + " with an account that may (credentials are taken from " + l.File + ")"
	case e.Reason == Missing:
		return "look for a mistake in the name or the tag; some registries say so, too, when credentials are " +
			"missing (docker login " + e.Host + ")"
	case e.Reason == Throttled:
		return "docker login " + e.Host + " often raises the limit"
	case e.Reason == Unreachable:
		return "is this machine offline, or is a proxy missing (HTTPS_PROXY)? An image that the engine has needs no " +
			"registry"
	case e.Reason == Failing && containsAny(e.Detail, "unexpected EOF", "connection reset", "broken pipe"):
		return "the connection broke off: look for a proxy on the way that ends it, or let the engine try a layer " +
			"more often (max-download-attempts of dockerd)"
	}
	return ""
}

// plainError is the error for plain HTTP to a registry that must use TLS.
type plainError struct{ host string }

func (e *plainError) Error() string {
	return "plain HTTP to " + e.host + " is refused, as it is not among the engine's insecure registries"
}
