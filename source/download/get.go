package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// version describes the version of an unfinished download.
type version struct {
	URL       string `json:"url"` // SHA-256 of the URL, which may contain a password
	Validator string `json:"validator"`
	Total     int64  `json:"total"`
}

// Get fetches a file to o.Dest. It resumes a broken download if the server supports that and its file is unchanged,
// and retries temporary failures. Errors are *Mismatch, *Refused, *TooLarge, *Unavailable, the cause of ctx, or of
// the file system. Only one Get may use a Dest at a time.
func Get(ctx context.Context, o Options) (Info, error) {
	g, err := newGetter(o)
	if err != nil {
		return Info{}, err
	}
	if g.local() {
		return g.copyLocal(ctx)
	}
	part, err := os.OpenFile(g.part(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return Info{}, err
	}
	defer part.Close()
	d := &transfer{getter: g, file: part}
	var info Info
	err = g.retry(ctx, func(ctx context.Context) (bool, error) {
		before := d.had
		var err error
		info, err = d.attempt(ctx)
		return d.had > before && !errors.Is(err, errSlow), err
	})
	if err != nil {
		if d.had == 0 || discards(err) {
			d.discard()
		}
		return Info{}, err
	}
	return info, d.finish()
}

// discards reports whether the received bytes are worthless after the error.
func discards(err error) bool {
	_, mismatch := errors.AsType[*Mismatch](err)
	_, large := errors.AsType[*TooLarge](err)
	_, refused := errors.AsType[*Refused](err)
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) // perhaps of the received bytes
	return mismatch || large || refused || full
}

func (g *getter) part() string { return g.Dest + ".part" }
func (g *getter) note() string { return g.Dest + ".part.json" }

// transfer is a running download to a file.
type transfer struct {
	*getter
	file *os.File
	had  int64        // bytes in the file after the last attempt
	came atomic.Int64 // bytes since the last check of watch
}

// attempt sends one request and receives its answer.
func (t *transfer) attempt(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer t.watch(cancel)()

	known, have, err := t.resumable()
	if err != nil {
		return Info{}, err
	}
	t.had = have
	headers := map[string]string{}
	if have > 0 {
		headers["Range"] = fmt.Sprintf("bytes=%d-", have)
		headers["If-Range"] = known.Validator
	}
	resp, err := t.ask(ctx, http.MethodGet, headers)
	if err != nil {
		return Info{}, stallOr(ctx, err)
	}
	defer resp.Body.Close()
	start, total, err := t.rangeOf(resp, have, known)
	if err != nil {
		return Info{}, err
	}
	if t.MaxSize > 0 && total > t.MaxSize {
		return Info{}, &TooLarge{URL: t.shown, Max: t.MaxSize}
	}
	// Truncate before remember: bytes of the old version must never count as bytes of the new one.
	if err := t.file.Truncate(start); err != nil {
		return Info{}, err
	}
	body := io.Reader(resp.Body)
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		body = strings.NewReader("") // the file is already complete
	} else if err := t.remember(resp, total); err != nil {
		return Info{}, err
	}
	sum, err := t.receive(body, start, total)
	if err != nil {
		return Info{}, stallOr(ctx, err)
	}
	if t.SHA256 != "" && sum != t.SHA256 {
		if start > 0 {
			// The two parts may be of different versions of the file; starting over will tell.
			return Info{}, &transient{err: t.startOver("the continued file has another SHA-256")}
		}
		return Info{}, &Mismatch{URL: t.shown, Want: t.SHA256, Got: sum}
	}
	return Info{Size: t.had, SHA256: sum, ETag: resp.Header.Get("ETag"),
		AcceptRanges: resp.Header.Get("Accept-Ranges") == "bytes"}, nil
}

// errSlow is wrapped by the error of a request that was too slow. The received bytes are kept, but do not count as
// progress.
var errSlow = errors.New("which is less than 1 KiB a second")

// watch cancels a request that is too slow, until stop is called.
func (t *transfer) watch(cancel context.CancelCauseFunc) (stop func()) {
	t.came.Store(0)
	ticker, done := time.NewTicker(t.Stall), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			switch came := t.came.Swap(0); {
			case came == 0:
				cancel(&transient{err: fmt.Errorf("nothing came for %v", t.Stall)})
			case float64(came) < slowest*t.Stall.Seconds():
				cancel(&transient{err: fmt.Errorf("%d bytes came in %v, %w", came, t.Stall, errSlow)})
			}
		}
	}()
	return func() { close(done) }
}

// stallOr returns the stall that ended the request, or else err.
func stallOr(ctx context.Context, err error) error {
	if stalled, ok := errors.AsType[*transient](context.Cause(ctx)); ok {
		return stalled
	}
	return err
}

// resumable returns the version of the received bytes and their number. It discards bytes without a version.
func (t *transfer) resumable() (version, int64, error) {
	var v version
	text, err := os.ReadFile(t.note())
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil || v.URL != identity(t.URL) || !t.identifies(v.Validator) {
		return version{}, 0, t.file.Truncate(0)
	}
	info, err := t.file.Stat()
	if err != nil {
		return version{}, 0, err
	}
	return v, info.Size(), nil
}

func identity(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}

// rangeOf returns the first byte of the answer and the size of the whole file (-1: unknown).
func (t *transfer) rangeOf(resp *http.Response, have int64, known version) (start, total int64, err error) {
	if resp.StatusCode == http.StatusOK {
		return 0, resp.ContentLength, nil
	}
	first, total, ok := contentRange(resp.Header.Get("Content-Range"))
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		if ok && have > 0 && total == have && have == known.Total {
			return have, total, nil
		}
		return 0, 0, &transient{err: t.startOver("the server has not the range that is missing")}
	case !ok || first != have || have == 0:
		return 0, 0, &transient{err: t.startOver("the server sent another range than was asked for")}
	case changed(resp.Header.Get("ETag"), known.Validator):
		return 0, 0, &transient{err: t.startOver("the file has changed on the server")}
	case known.Total >= 0 && total >= 0 && total != known.Total:
		return 0, 0, &transient{err: t.startOver("the file has changed its size on the server")}
	case total < 0:
		total = known.Total
	}
	return have, total, nil
}

// changed reports whether a tag contradicts the requested validator: some servers ignore If-Range.
func changed(tag, validator string) bool {
	return strings.HasPrefix(tag, `"`) && strings.HasPrefix(validator, `"`) && tag != validator
}

// startOver discards the received bytes and returns an error with the reason.
func (t *transfer) startOver(why string) error {
	err := errors.New(why)
	return errors.Join(err, os.RemoveAll(t.note()), t.file.Truncate(0))
}

// remember stores the version that is being received.
func (t *transfer) remember(resp *http.Response, total int64) error {
	v := version{URL: identity(t.URL), Validator: resp.Header.Get("ETag"), Total: total}
	if !isStrong(v.Validator) {
		v.Validator = resp.Header.Get("Last-Modified")
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if !t.identifies(v.Validator) {
		return os.RemoveAll(t.note())
	}
	return os.WriteFile(t.note(), text, 0o644)
}

// identifies reports whether a validator is enough to resume. A weak tag or a date does not guarantee equal bytes:
// then the final SHA-256 must be known.
func (t *transfer) identifies(validator string) bool {
	return isStrong(validator) || validator != "" && t.SHA256 != ""
}

func isStrong(tag string) bool { return strings.HasPrefix(tag, `"`) }

// receive writes the body from byte start on and returns the SHA-256 of the whole file.
func (t *transfer) receive(body io.Reader, start, total int64) (sum string, err error) {
	hash := sha256.New()
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(hash, t.file); err != nil {
		return "", err
	}
	t.had = start
	buf := make([]byte, 256<<10)
	for {
		n, readErr := body.Read(buf)
		if n > 0 {
			t.came.Add(int64(n))
			if _, err := t.file.Write(buf[:n]); err != nil {
				return "", err
			}
			hash.Write(buf[:n])
			t.had += int64(n)
			if t.MaxSize > 0 && t.had > t.MaxSize {
				return "", &TooLarge{URL: t.shown, Max: t.MaxSize}
			}
			if t.Progress != nil {
				t.Progress(t.had, total)
			}
		}
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			return "", &transient{err: fmt.Errorf("broken off after %d bytes: %w", t.had, readErr)}
		}
	}
	if total >= 0 && t.had < total {
		return "", &transient{err: fmt.Errorf("broken off after %d of %d bytes", t.had, total)}
	}
	if total >= 0 && t.had > total {
		return "", &transient{err: t.startOver(fmt.Sprintf("more than the %d bytes that were announced", total))}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// finish moves the file to its destination.
func (t *transfer) finish() error {
	if err := t.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(t.part(), t.Dest); err != nil {
		return err
	}
	return os.RemoveAll(t.note())
}

func (t *transfer) discard() {
	os.Remove(t.part())
	os.Remove(t.note())
}

// local reports whether the URL names a file of this machine.
func (g *getter) local() bool { return g.parsed.Scheme == "" || g.parsed.Scheme == "file" }

// localFile returns the path of the URL's file and its size in bytes. Errors are *Refused.
func (g *getter) localFile() (path string, size int64, err error) {
	path = g.URL
	if g.parsed.Scheme == "file" {
		path = g.parsed.Path
	}
	switch {
	case !g.AllowLocal:
		err = errors.New("files of this machine are not allowed here")
	case !filepath.IsAbs(path) || g.parsed.Scheme == "file" && g.parsed.Host != "" && g.parsed.Host != "localhost":
		err = errors.New("not an absolute path of this machine")
	default:
		var info os.FileInfo
		// do not open a pipe: that would block
		if info, err = os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, info.Size(), nil
		} else if err == nil {
			err = errors.New("not a regular file")
		}
	}
	return "", 0, &Refused{URL: g.shown, Err: err}
}

// copyLocal is Get for a file of this machine.
func (g *getter) copyLocal(ctx context.Context) (Info, error) {
	path, _, err := g.localFile()
	if err != nil {
		return Info{}, err
	}
	in, err := os.Open(path)
	if err != nil {
		return Info{}, &Refused{URL: g.shown, Err: err}
	}
	defer in.Close()
	out, err := os.OpenFile(g.part(), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return Info{}, err
	}
	defer out.Close()
	t := &transfer{getter: g, file: out}
	sum, err := t.receive(readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return in.Read(p)
	}), 0, -1)
	if err == nil && g.SHA256 != "" && sum != g.SHA256 {
		err = &Mismatch{URL: g.shown, Want: g.SHA256, Got: sum}
	}
	if err != nil {
		t.discard()
		return Info{}, err
	}
	return Info{Size: t.had, SHA256: sum}, t.finish()
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
