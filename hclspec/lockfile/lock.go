// Package lockfile reads and writes benchgraph.lock.hcl: what the revisions, images, downloads and wheels of a project
// are pinned to, and the fixes that failures asked for.
package lockfile

import (
	"maps"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Lock is what benchgraph.lock.hcl pins. The zero Lock pins nothing.
type Lock struct {
	Repos   map[string]Repo              // by repo name
	Images  map[string]Image             // by the name in the file
	Fetches map[string]Fetch             // by URL
	Fixes   map[string][]Fix             // by fix name
	Wheels  map[string]map[string]string // wheel name → candidate key → the prebuilt URL that served
	Nearest map[string]map[string]Near   // wheel name → candidate key → the ancestor whose prebuilt wheel that is
	// wheel name → URL of a prebuilt wheel that was fetched and is none of the revision → why
	Refused map[string]map[string]string
}

// Near is the ancestor whose wheel serves another commit.
type Near struct {
	Commit string // 40 hexadecimal digits
	Back   int    // number of commits back along first parents
}

// Repo pins the revisions of one repo.
type Repo struct {
	Location  string            // URL or path that the pins came from
	Revs      map[string]Rev    // by the spelling in the file
	Described map[string]string // commit → what git describe says of it
	// overlay patterns joined by a space → commit → digest of the rest of its tree
	Outside map[string]map[string]string
}

// Rev is one resolved revision: 40 hexadecimal digits each.
type Rev struct {
	Commit  string // empty: Unknown says why
	Tree    string
	Unknown string // why the repo has no such revision, for the rest of this process: it is not written
}

// Image is what the name of an image turned out to mean.
type Image struct {
	Digest string // sha256:…, of its manifest in the registry; of its configuration when no registry has it
	Size   int64  // bytes to be downloaded; 0: not known
	// variables of its configuration that say which NVIDIA driver it needs
	Requires map[string]string
}

// Fetch is what a download turned out to be.
type Fetch struct {
	SHA256 string
	Size   int64
}

// Fix is a fix that a failure asked for.
type Fix struct {
	Commit   string // name of the commit block
	Rev      string // what the commit stood for, 40 hexadecimal digits; empty: no code, or an older lock file
	At       string // block that it is applied to, as kind.name; empty: wherever it may be
	Evidence string // the log line that matched
}

// Holds reports whether the fix is for a commit: a name that was given to another revision since is another commit. An
// empty rev is that of a commit without code.
func (f Fix) Holds(commit, rev string) bool {
	return f.Commit == commit && (f.Rev == "" || rev == "" || f.Rev == rev)
}

// Learn adds a fix to the lock. What was learnt for another revision by that name goes.
func (lock *Lock) Learn(name string, learnt Fix) {
	var all []Fix
	for _, known := range lock.Fixes[name] {
		if known.Commit == learnt.Commit {
			if !known.Holds(learnt.Commit, learnt.Rev) {
				continue
			}
			known.Rev = learnt.Rev // the file has one for each name
		}
		all = append(all, known)
	}
	if lock.Fixes == nil {
		lock.Fixes = map[string][]Fix{}
	}
	lock.Fixes[name] = append(all, learnt)
}

var byHash = lazyregexp.New(`^[0-9a-f]{4,40}([~^][0-9]*)*$`)

// ByHash says whether a revision is spelt by a hash, so that it stands for the same commit for ever.
func ByHash(spelling string) bool { return byHash().MatchString(spelling) }

// DropNames forgets what names of revisions stand for. Those that are hashes stay.
func (lock *Lock) DropNames() {
	for _, pins := range lock.Repos {
		maps.DeleteFunc(pins.Revs, func(spelling string, _ Rev) bool { return !ByHash(spelling) })
	}
}
