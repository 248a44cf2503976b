package mirror

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/internal/head"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git/command"
)

// A mirror is partial, without the content of files, only where the server says that it can leave that out. A server of
// plain files cannot. With a configuration that promises missing objects, git's program for such servers would have
// each of them fetched by another git, which begins in the same way, without end.

// filterOffered is a line of git's trace of packets in which the server offers to leave objects out: among the features
// of the command fetch, or, in the older protocol, behind the first reference.
var filterOffered = lazyregexp.New(`(?m)packet: .*< (fetch=(.* )?filter\b|.*\\0(.* )?filter\b)`)

// traced is a line of that trace.
var traced = lazyregexp.New(`(?m)^.* packet: .*\n`)

// filters says whether the server can leave objects out. Each other transport than HTTP runs git at the other end,
// which says so itself.
func (m *Mirror) filters(ctx context.Context) (bool, error) {
	if !strings.HasPrefix(m.url(), "http://") && !strings.HasPrefix(m.url(), "https://") {
		return true, nil
	}
	if m.offers != nil {
		return *m.offers, nil
	}
	trace := &head.Buffer{Most: 64 << 10}
	_, err := m.Git.Output(ctx, command.Call{
		Args: []string{"ls-remote", "--quiet", "origin", "HEAD"}, Env: append(m.remoteEnv(), "GIT_TRACE_PACKET=1"),
		Stderr: trace,
	})
	if exit, ok := errors.AsType[*command.ExitError](err); ok {
		exit.Stderr = traced().ReplaceAllString(exit.Stderr, "")
	}
	if err != nil {
		return false, err
	}
	offered := filterOffered().Match(trace.Bytes())
	m.offers = &offered
	return offered, nil
}

// startOver empties a partial mirror, since git would take its objects as complete in the full fetches that follow. The
// caller holds the lock of the mirror.
func (m *Mirror) startOver(ctx context.Context) error {
	promised, err := filepath.Glob(filepath.Join(m.Dir, "objects", "pack", "*.promisor"))
	if err != nil || len(promised) == 0 {
		return err
	}
	if err := os.Remove(filepath.Join(m.Dir, readyName)); err != nil {
		return err
	}
	clear(m.fetched)
	return m.fill(ctx)
}
