package container

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/opencontainers/go-digest"

	"github.com/benchgraph/benchgraph/container/login"
	"github.com/benchgraph/benchgraph/container/registry"
)

// Progress is the progress of a transfer.
type Progress struct {
	Phase string // "waiting", "fetching", "unpacking", "sending"
	Bytes int64  // transferred bytes of all layers; compressed, except while sending
	Total int64  // bytes of all known layers; 0: none known
}

// Pull pulls an image by its digest and verifies that the engine has it. ref names the repository; its tag is
// ignored. Pull retries after broken connections and temporary refusals. The engine resumes a broken layer and
// fetches no layer that it has, but may discard everything when it gives up. If the engine has the image, nothing is
// fetched. A pulled image is marked. Errors are *registry.Error, errors of the engine, or the cause of ctx. progress
// may be nil.
func (e *Engine) Pull(ctx context.Context, ref, dgst string, progress func(Progress)) (Image, error) {
	repository, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return Image{}, fmt.Errorf("%q is no reference to an image: %w", ref, err)
	}
	pinned, err := digest.Parse(dgst)
	if err != nil {
		return Image{}, fmt.Errorf("%q is no digest: %w", dgst, err)
	}
	wanted, err := reference.WithDigest(reference.TrimNamed(repository), pinned)
	if err != nil {
		return Image{}, err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	if img, err := e.pulled(ctx, wanted); err == nil {
		return img, nil
	}
	var img Image
	seen := map[string]bool{}
	err = e.retry(ctx, pullAttempts, func(ctx context.Context) (bool, error) {
		// The engine may have restarted as a different one.
		c, err := e.registries(ctx)
		if err != nil {
			return false, err
		}
		m, err := c.Manifest(ctx, wanted, false)
		if r, ok := errors.AsType[*registry.Error](err); ok && r.Reason == registry.Unreachable {
			// The engine may use a mirror or a proxy.
			m = registry.Manifest{Digest: dgst}
		} else if err != nil {
			return false, err
		}
		w := &pulling{Manifest: m, report: progress, has: map[string]int64{}, seen: seen}
		if err := e.fetch(ctx, wanted, w); err != nil {
			return w.moved, err
		}
		img, err = e.pulled(ctx, wanted)
		if err == nil {
			img.Brought, err = true, e.tag(ctx, img.ID, markOf(img.ID))
		}
		if IsNoImage(err) {
			err = brokeOff("pull image", io.ErrUnexpectedEOF)
		}
		return w.moved, err
	}, func(error) { progress(Progress{Phase: "waiting"}) })
	return img, err
}

// pullAttempts is the largest number of successive pulls without progress. The engine itself tries five times per
// layer.
const pullAttempts = 4

// pulled returns an image that the engine has under its digest.
func (e *Engine) pulled(ctx context.Context, wanted reference.Canonical) (Image, error) {
	img, err := e.Image(ctx, wanted.String())
	if err == nil && !slices.Contains(img.Digests, reference.FamiliarString(wanted)) {
		err = &registry.Error{Ref: reference.FamiliarString(wanted), Host: reference.Domain(wanted),
			Reason: registry.Damaged, Detail: "the engine has " + img.ID + " instead"}
	}
	return img, err
}

// fetch makes the engine pull an image once.
func (e *Engine) fetch(ctx context.Context, wanted reference.Canonical, w *pulling) error {
	return e.transfer(ctx, "pull image", wanted, func(ctx context.Context, a *api, auth string) (io.ReadCloser, error) {
		return a.ImagePull(ctx, wanted.String(), image.PullOptions{RegistryAuth: auth})
	}, w.hear)
}

// transfer makes the engine pull or push an image, and passes its messages to hear. It gives up after a long silence.
func (e *Engine) transfer(ctx context.Context, doing string, ref reference.Named,
	begin func(ctx context.Context, a *api, auth string) (io.ReadCloser, error), hear func(message)) error {
	l, err := login.Find(ctx, e.options.Environ, reference.Domain(ref))
	if err != nil {
		return err
	}
	auth, err := l.Header(reference.Domain(ref))
	if err != nil {
		return err
	}
	stall := stallFactor * cmp.Or(e.options.Patience, registry.AnswerTime)
	stalled := &registry.Error{Ref: reference.FamiliarString(ref), Host: reference.Domain(ref),
		Reason: registry.Failing, Detail: fmt.Sprintf("nothing came for %v", stall),
		Remedy: "the engine may go on to wait for it, until it is restarted", Stalled: true}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stall, func() { cancel(stalled) })
	defer timer.Stop()
	_, err = long(within, e, doing, func(ctx context.Context, a *api) (struct{}, error) {
		body, err := begin(ctx, a, auth)
		if err != nil {
			if u := e.behind(ctx, err); u != nil {
				return struct{}{}, u
			}
			return struct{}{}, explainTransfer(ref, l, err)
		}
		defer body.Close()
		return struct{}{}, explainTransfer(ref, l, messages(body, func(m message) {
			timer.Reset(stall)
			hear(m)
		}))
	})
	return err
}

// stallFactor is the ratio of the longest silence of a transfer to the time limit of an answer: the engine unpacks
// and compares large layers silently.
const stallFactor = 10

// pulling follows the progress of a pull.
type pulling struct {
	registry.Manifest
	report func(Progress)
	has    map[string]int64 // short ID of a layer -> bytes that have arrived
	// short IDs of complete layers, also of earlier attempts: an engine may discard them after a failed pull
	seen  map[string]bool
	moved bool // a layer was completed for the first time
}

func (w *pulling) hear(m message) {
	if m.ID == "" {
		return
	}
	size := w.size(m.ID)
	p := Progress{Phase: "fetching", Total: w.Total}
	switch {
	case strings.HasPrefix(m.Status, "Downloading"):
		w.has[m.ID] = m.Detail.Current
	case strings.HasPrefix(m.Status, "Extracting"):
		p.Phase = "unpacking"
		w.has[m.ID] = size
	case strings.HasPrefix(m.Status, "Download complete"):
		w.has[m.ID] = size
	case strings.HasPrefix(m.Status, "Pull complete"):
		w.has[m.ID] = size
		w.moved = w.moved || !w.seen[m.ID]
		w.seen[m.ID] = true
	case strings.HasPrefix(m.Status, "Already exists"):
		w.has[m.ID] = size
	default:
		return
	}
	for _, n := range w.has {
		p.Bytes += n
	}
	w.report(p)
}

// size returns the size of a layer by its short ID.
func (w *pulling) size(short string) int64 {
	for digest, size := range w.Sizes {
		if strings.HasPrefix(digest, "sha256:"+short) {
			return size
		}
	}
	return w.has[short]
}

// message is one line of an engine's progress report.
type message struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Stream string `json:"stream"`
	Error  string `json:"error"`
	Detail struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	ErrorDetail struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"errorDetail"`
	Aux json.RawMessage `json:"aux"`
}

// EngineError is an error in an engine's progress report.
type EngineError struct {
	Code    int // exit code of a build step; 0: none
	Message string
}

func (e *EngineError) Error() string { return e.Message }

// maxMessage limits a line of the engine, in bytes: lines contain the output of builds.
const maxMessage = 4 << 20

// messages passes the engine's lines to hear. It returns io.ErrUnexpectedEOF if the stream ends within a line.
func messages(r io.Reader, hear func(message)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			if _, broken := errors.AsType[*json.SyntaxError](err); broken {
				return fmt.Errorf("what the engine tells is broken off: %w", io.ErrUnexpectedEOF)
			}
			return fmt.Errorf("what the engine tells is not understood: %w", err)
		}
		if text := cmp.Or(m.ErrorDetail.Message, m.Error); text != "" {
			return &EngineError{Code: m.ErrorDetail.Code, Message: text}
		}
		hear(m)
	}
	return lines.Err()
}

// answered reports whether an error is an answer of the engine.
func answered(err error) bool {
	if _, ok := errors.AsType[*EngineError](err); ok {
		return true
	}
	for _, is := range []func(error) bool{
		errdefs.IsInternal, errdefs.IsNotFound, errdefs.IsUnauthorized, errdefs.IsPermissionDenied,
		errdefs.IsInvalidArgument, errdefs.IsConflict,
		errdefs.IsUnavailable, errdefs.IsNotImplemented, errdefs.IsUnknown,
	} {
		if is(err) {
			return true
		}
	}
	return false
}

// explainTransfer converts an engine's error in a transfer to a *registry.Error if the message is about the registry.
func explainTransfer(ref reference.Named, l login.Login, err error) error {
	if err == nil || !answered(err) || isFull(err.Error()) {
		return err
	}
	return registry.FromEngine(ref, l, strings.TrimPrefix(err.Error(), "Error response from daemon: "))
}
