package bundle

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/benchgraph/benchgraph/cache"
)

// Build returns a name of this program that no other program has: the revision, or the digest of the program where the
// build does not say the revision or had changes that were not committed. Empty: not known.
func Build(ctx context.Context) string {
	of, changed := Source()
	if of != "" && !changed {
		return of
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(self)
	if err != nil {
		return ""
	}
	defer f.Close()
	digest, _, err := cache.HashReader(ctx, f)
	if err != nil {
		return ""
	}
	return "program " + digest
}

// Source returns what the build says of itself: the revision, and whether there were changes that were not committed.
func Source() (revision string, changed bool) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
	}
	return revision, changed
}
