package tasks

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/source/download"
)

// downloadTask downloads one file. The key has the declared digest or, without one, the address.
type downloadTask struct {
	p        *Drawing
	url      string
	declared string // SHA-256 that the file declares; empty: none
	expected string // SHA-256 that is declared or pinned in the lock; empty: unknown
	most     int64  // greatest size, in bytes
}

func (t *downloadTask) Describe(d *cache.Description) {
	if t.declared != "" {
		d.Add("sha256", t.declared)
		return
	}
	d.Add("url", t.url)
}

func (t *downloadTask) Run(ctx context.Context, env *engine.Env) error {
	if t.p.Offline {
		return &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: "offline", Stage: "fetch",
			Message: download.WithoutPassword(t.url) + " is not in the store, and -offline forbids to fetch it"}}
	}
	fmt.Fprintf(env.Log, "GET %s\n", download.WithoutPassword(t.url))
	// A partial download stays, so that the next attempt or apply resumes it.
	partial := filepath.Join(t.p.StateDir, "downloads", fmt.Sprintf("%x", sha256.Sum256([]byte(t.url)))[:16])
	if err := os.MkdirAll(filepath.Dir(partial), 0o755); err != nil {
		return err
	}
	info, err := download.Get(ctx, download.Options{
		URL: t.url, SHA256: t.expected, Dest: partial, Client: t.p.HTTP, AllowLocal: true, MaxSize: t.most,
		Progress: func(done, total int64) {
			env.Emit(engine.Event{Type: engine.NodeProgress, Phase: "fetch",
				Data: map[string]any{"done": done, "total": total}})
		},
	})
	if err != nil {
		return downloadFailure(err)
	}
	fmt.Fprintf(env.Log, "%d bytes, sha256 %s\n", info.Size, info.SHA256)
	to := filepath.Join(env.Out, download.FileName(t.url))
	transcript.Of(env).Did("download", download.WithoutPassword(t.url), to, info.SHA256)
	if err := fs.CopyFile(to, partial); err != nil {
		return err
	}
	return os.Remove(partial)
}

func downloadFailure(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	f := failure.Failure{Class: failure.Transient, Rule: "download", Stage: "fetch", Message: err.Error()}
	var mismatch *download.Mismatch
	var refused *download.Refused
	var large *download.TooLarge
	switch {
	case errors.As(err, &large):
		f.Class, f.Rule, f.Remedy = failure.Permanent, "download_too_large",
			"if the file is as large as that, raise max_size in the fetch block and apply with -retry-failed"
	case errors.As(err, &mismatch):
		f.Class, f.Rule, f.Remedy = failure.Permanent, "download_mismatch",
			"the file behind the URL is not the declared one: correct sha256, or the URL"
	case errors.As(err, &refused):
		f.Class, f.Rule, f.Remedy = failure.Permanent, "download_refused",
			"check the URL; the server does not have the file or does not give it"
	}
	return &engine.Failure{Failure: f, Err: err}
}

// Undeclared returns the URL of a node's download if the file declares no digest for it; empty for all other nodes.
func Undeclared(n *engine.Node) string {
	var t *downloadTask
	switch task := n.Task.(type) {
	case *downloadTask:
		t = task
	case *prebuiltTask:
		t = &task.downloadTask
	}
	if t == nil || t.declared != "" {
		return ""
	}
	return t.url
}
