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

// A mirror is partial, without the content of files, only if the server offers to leave content out. A server of
// plain files cannot. If the configuration had a promisor, git's helper for such servers would start another git to
// fetch each missing object, which would start the helper again, endlessly.

// filterOffered matches a line of git's packet trace in which the server offers filters: among the features of the
// command fetch or, in the older protocol, after the first ref.
var filterOffered = lazyregexp.New(`(?m)packet: .*< (fetch=(.* )?filter\b|.*\\0(.* )?filter\b)`)

// traced matches a line of that trace.
var traced = lazyregexp.New(`(?m)^.* packet: .*\n`)

// filters reports whether the server can leave objects out. All transports other than HTTP run git on the other side,
// which declares its features itself.
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

// startOver empties a partial mirror, since git would consider its objects complete in the following full fetches.
// The caller must hold the mirror's lock.
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
