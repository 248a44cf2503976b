// Package git reads foreign repositories: it resolves revisions in the mirror of each, and lays out the tree of a
// commit, with or without a patch, exactly as stored.
//
// The repositories are not trusted. No hook, filter, attribute or configuration of a repository or of the user has an
// effect, submodules are not followed, and nothing is written outside the directory that the caller names. Git 2.32 or
// newer does the work, run through an executor.
package git

import (
	"context"

	"github.com/benchgraph/benchgraph/source/git/mirror"
)

// Mirror is the bare copy of one repository, with all that is read in it.
type Mirror struct{ *mirror.Mirror }

// What callers need to know of mirrors.
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
