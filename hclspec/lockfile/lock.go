// Package lockfile reads and writes benchgraph.lock.hcl: the pins of revisions, images, downloads and wheels of a
// project, and the fixes that failures asked for.
package lockfile

import (
	"maps"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Lock is the content of benchgraph.lock.hcl. The zero Lock pins nothing.
type Lock struct {
	Repos   map[string]Repo              // by repo name
	Images  map[string]Image             // by the name in the file
	Fetches map[string]Fetch             // by URL
	Fixes   map[string][]Fix             // by fix name
	Wheels  map[string]map[string]string // wheel name → candidate key → URL of the prebuilt wheel
	Nearest map[string]map[string]Near   // wheel name → candidate key → ancestor with that prebuilt wheel
	// wheel name → URL of a prebuilt wheel that is not of the revision → reason
	Refused map[string]map[string]string
}

// Near is the ancestor whose wheel serves another commit.
type Near struct {
	Commit string // 40 hexadecimal digits
	Back   int    // number of commits back along first parents
}

// Repo pins the revisions of one repo.
type Repo struct {
	Location  string            // URL or path from which the pins came
	Revs      map[string]Rev    // by the spelling in the file
	Described map[string]string // commit → output of git describe
	// overlay patterns joined by a space → commit → digest of the rest of the commit's tree
	Outside map[string]map[string]string
}

// Rev is one resolved revision. Object names have 40 hexadecimal digits.
type Rev struct {
	Commit  string // empty: see Unknown
	Tree    string
	Unknown string // reason why the repo has no such revision; it is kept in this process and not written
}

// Image is the pin of the name of an image.
type Image struct {
	Digest string // sha256:… of its manifest; of its configuration if no registry has the image
	Size   int64  // bytes to be downloaded; 0: not known
	// variables of its configuration about the NVIDIA driver that it needs
	Requires map[string]string
}

// Fetch is the pin of a download.
type Fetch struct {
	SHA256 string
	Size   int64
}

// Fix is a fix that a failure asked for.
type Fix struct {
	Commit   string // name of the commit block
	Rev      string // revision of the commit, 40 hexadecimal digits; empty: no code, or an older lock file
	At       string // block to which the fix is applied, as kind.name; empty: any
	Evidence string // the log line that matched
}

// Holds reports whether the fix is for a commit. If the name was given to another revision since, it is another commit.
// An empty rev is that of a commit without code.
func (f Fix) Holds(commit, rev string) bool {
	return f.Commit == commit && (f.Rev == "" || rev == "" || f.Rev == rev)
}

// Learn adds a fix to the lock. Fixes for another revision with that name are removed.
func (lock *Lock) Learn(name string, learnt Fix) {
	var all []Fix
	for _, known := range lock.Fixes[name] {
		if known.Commit == learnt.Commit {
			if !known.Holds(learnt.Commit, learnt.Rev) {
				continue
			}
			known.Rev = learnt.Rev // the file has one revision for each name
		}
		all = append(all, known)
	}
	if lock.Fixes == nil {
		lock.Fixes = map[string][]Fix{}
	}
	lock.Fixes[name] = append(all, learnt)
}

var byHash = lazyregexp.New(`^[0-9a-f]{4,40}([~^][0-9]*)*$`)

// ByHash reports whether a revision is spelt by a hash, so that it always means the same commit.
func ByHash(spelling string) bool { return byHash().MatchString(spelling) }

// DropNames removes the pins of revisions that are not spelt by a hash.
func (lock *Lock) DropNames() {
	for _, pins := range lock.Repos {
		maps.DeleteFunc(pins.Revs, func(spelling string, _ Rev) bool { return !ByHash(spelling) })
	}
}
