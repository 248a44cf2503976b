// Package git reads foreign repositories: it resolves revisions in a mirror of each, and writes the tree of a commit,
// with or without a patch, exactly as stored.
//
// The repositories are not trusted. Hooks, filters, attributes and configuration of a repository or of the user have
// no effect, submodules are not followed, and nothing is written outside the caller's directory. Git 2.32 or newer is
// required; it runs through an executor.
package git

import (
	"context"

	"github.com/benchgraph/benchgraph/source/git/mirror"
)

// Mirror is the bare copy of a repository.
type Mirror struct{ *mirror.Mirror }

// Types of package mirror that callers need.
type (
	Options    = mirror.Options
	Resolved   = mirror.Resolved
	UnknownRev = mirror.UnknownRev
	FetchError = mirror.FetchError
)

// Open prepares the mirror of a repository. It uses no network: later calls fetch missing objects. The error wraps
// fs.ErrNotExist if a path does not exist.
func Open(ctx context.Context, o Options) (*Mirror, error) {
	m, err := mirror.Open(ctx, o)
	return &Mirror{m}, err
}

// DiskFull reports whether a git command failed because a disk is full.
func DiskFull(err error) bool { return mirror.DiskFull(err) }
