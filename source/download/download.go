// Package download fetches a file from a URL, either completely or not at all.
//
// If the connection breaks, the received bytes stay beside the destination, with the server's version of the file. A
// later Get, also in another process, resumes the download. The SHA-256 is computed while bytes arrive.
package download

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Options describe a download.
type Options struct {
	URL    string
	SHA256 string // required SHA-256 in 64 hexadecimal digits; empty: any content
	// path of the file; Dest.part and Dest.part.json hold an unfinished download
	Dest       string
	Client     *http.Client            // nil: http.DefaultClient
	Progress   func(done, total int64) // total is -1 while it is unknown; called from the downloading goroutine
	MaxSize    int64                   // bytes; 0: no limit
	AllowLocal bool                    // the URL may also be file:///path or a plain absolute path
	Backoff    time.Duration           // before the second attempt, doubled before each further one; 0: 1 s
	Stall      time.Duration           // less than 1 KiB a second for this long counts as a break; 0: 60 s
}

// Info describes a file. Head sets no SHA256, and Get of a local file no ETag.
type Info struct {
	Size         int64 // bytes; -1: unknown
	SHA256       string
	ETag         string
	AcceptRanges bool
}

// Mismatch is the error for content with another digest than declared. The file is not kept.
type Mismatch struct {
	URL       string
	Want, Got string // SHA-256 in hexadecimal digits
}

func (e *Mismatch) Error() string {
	return fmt.Sprintf("%s: its SHA-256 is %s, want %s", e.URL, e.Got, e.Want)
}

// Refused is the error for a URL that a server will not serve, however often it is asked.
type Refused struct {
	URL    string
	Status int   // HTTP status; 0: there was no answer
	Err    error // why, when Status is 0
}

func (e *Refused) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("%s: %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

func (e *Refused) Unwrap() error { return e.Err }

// TooLarge is the error for content of more than Options.MaxSize bytes.
type TooLarge struct {
	URL string
	Max int64
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%s has more than the %s that a download may have", e.URL, units.BytesSize(float64(e.Max)))
}

// Unavailable is the error after all attempts failed for temporary reasons. The received bytes are kept for the next
// Get.
type Unavailable struct {
	URL      string
	Attempts int
	Err      error // of the last attempt
}

func (e *Unavailable) Error() string {
	return fmt.Sprintf("%s: %v (after %d attempts)", e.URL, e.Err, e.Attempts)
}

func (e *Unavailable) Unwrap() error { return e.Err }

const (
	maxRedirects   = 10
	maxIdle        = 5   // successive attempts without progress
	maxAttempts    = 100 // total attempts
	maxPause       = 2 * time.Minute
	defaultBackoff = time.Second
	defaultStall   = time.Minute
	slowest        = 1 << 10 // bytes a second; a slower connection is closed
)

// transient is a temporary failure.
type transient struct {
	err   error
	after time.Duration // the server's Retry-After
}

func (e *transient) Error() string { return e.err.Error() }
func (e *transient) Unwrap() error { return e.err }

// Head returns size and version of a file without fetching it. It uses the options URL, Client, AllowLocal, Backoff
// and Stall. If a server does not support HEAD, Head requests the first byte instead. Errors are *Refused,
// *Unavailable or the cause of ctx.
func Head(ctx context.Context, o Options) (Info, error) {
	g, err := newGetter(o)
	if err != nil {
		return Info{}, err
	}
	if g.local() {
		_, size, err := g.localFile()
		return Info{Size: size}, err
	}
	var info Info
	err = g.retry(ctx, func(ctx context.Context) (bool, error) {
		var err error
		info, err = g.head(ctx)
		return false, err
	})
	return info, err
}

// head is one attempt of Head.
func (g *getter) head(ctx context.Context) (Info, error) {
	resp, err := g.ask(ctx, http.MethodHead, nil)
	if refused, ok := errors.AsType[*Refused](err); ok &&
		(refused.Status == 403 || refused.Status == 405 || refused.Status == 501) {
		// Signed URLs are signed for one method.
		resp, err = g.ask(ctx, http.MethodGet, map[string]string{"Range": "bytes=0-0"})
	}
	if err != nil {
		return Info{}, err
	}
	defer resp.Body.Close()
	info := Info{Size: resp.ContentLength, ETag: resp.Header.Get("ETag"),
		AcceptRanges: resp.Header.Get("Accept-Ranges") == "bytes"}
	if _, total, ok := contentRange(resp.Header.Get("Content-Range")); ok {
		info.AcceptRanges, info.Size = true, total
	}
	return info, nil
}

// getter is a running download.
type getter struct {
	Options
	parsed *url.URL
	shown  string // URL without password, for messages
	client http.Client
}

func newGetter(o Options) (*getter, error) {
	g := &getter{Options: o}
	var err error
	if g.parsed, err = url.Parse(o.URL); err != nil {
		return nil, &Refused{URL: strconv.Quote(o.URL), Err: errors.New("not a URL")}
	}
	g.shown = g.parsed.Redacted()
	if o.SHA256 = strings.ToLower(o.SHA256); o.SHA256 != "" {
		if raw, err := hex.DecodeString(o.SHA256); err != nil || len(raw) != 32 {
			return nil, fmt.Errorf("SHA-256 %q: want 64 hexadecimal digits", o.SHA256)
		}
	}
	g.SHA256 = o.SHA256
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	g.client = *o.Client
	if g.client.CheckRedirect == nil {
		g.client.CheckRedirect = checkRedirect
	}
	if g.Backoff <= 0 {
		g.Backoff = defaultBackoff
	}
	if g.Stall <= 0 {
		g.Stall = defaultStall
	}
	return g, nil
}

// errRedirect is wrapped by the error for a redirect that is not followed.
var errRedirect = errors.New("redirect refused")

func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("%w: more than %d", errRedirect, maxRedirects)
	case req.URL.Scheme == "http" && via[0].URL.Scheme == "https":
		return fmt.Errorf("%w: from https to http", errRedirect)
	}
	return nil
}

// retry calls attempt until it succeeds, fails permanently, or makes no progress too often.
func (g *getter) retry(ctx context.Context, attempt func(context.Context) (progress bool, err error)) error {
	pause, idle := g.Backoff, 0
	for n := 1; ; n++ {
		progress, err := attempt(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", g.shown, context.Cause(ctx))
		}
		passing, ok := errors.AsType[*transient](err)
		if !ok {
			return err
		}
		if idle++; progress {
			pause, idle = g.Backoff, 0
		}
		if idle >= maxIdle || n >= maxAttempts {
			return &Unavailable{URL: g.shown, Attempts: n, Err: passing.err}
		}
		wait := min(max(pause+rand.N(pause/4+1), passing.after), maxPause)
		pause *= 2
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", g.shown, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// ask sends one request. It returns responses with status 200, 206 and 416, and an error for all others.
func (g *getter) ask(ctx context.Context, method string, headers map[string]string) (*http.Response, error) {
	if g.parsed.Scheme != "http" && g.parsed.Scheme != "https" {
		return nil, &Refused{URL: g.shown, Err: fmt.Errorf("scheme %q is neither http nor https", g.parsed.Scheme)}
	}
	req, err := http.NewRequestWithContext(ctx, method, g.URL, nil)
	if err != nil {
		return nil, &Refused{URL: g.shown, Err: errors.New("not a URL")}
	}
	// Sizes and ranges count bytes of the file, not of a compressed copy.
	req.Header.Set("Accept-Encoding", "identity")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // the URL may contain a password
		}
		if _, bad := errors.AsType[*tls.CertificateVerificationError](err); bad || errors.Is(err, errRedirect) {
			return nil, &Refused{URL: g.shown, Err: err}
		}
		return nil, &transient{err: err}
	}
	switch s := resp.StatusCode; {
	case s == http.StatusOK || s == http.StatusPartialContent || s == http.StatusRequestedRangeNotSatisfiable:
		return resp, nil
	case s >= 500 && s != http.StatusNotImplemented || s == http.StatusTooManyRequests ||
		s == http.StatusRequestTimeout || s == http.StatusTooEarly:
		resp.Body.Close()
		return nil, &transient{err: fmt.Errorf("%d %s", s, http.StatusText(s)),
			after: retryAfter(resp.Header.Get("Retry-After"))}
	}
	resp.Body.Close()
	return nil, &Refused{URL: g.shown, Status: resp.StatusCode}
}

// retryAfter parses seconds or a date.
func retryAfter(value string) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n > 0 {
		return min(time.Duration(n), maxPause/time.Second) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// contentRange parses "bytes 5-9/10". It returns the first byte and the total size, which is -1 for "*".
func contentRange(value string) (first, total int64, ok bool) {
	value, ok = strings.CutPrefix(value, "bytes ")
	span, whole, found := strings.Cut(value, "/")
	if !ok || !found {
		return 0, 0, false
	}
	total = -1
	if whole != "*" {
		n, err := strconv.ParseUint(whole, 10, 62)
		if err != nil {
			return 0, 0, false
		}
		total = int64(n)
	}
	if span == "*" {
		return -1, total, true
	}
	from, _, _ := strings.Cut(span, "-")
	n, err := strconv.ParseUint(from, 10, 62)
	return int64(n), total, err == nil
}
