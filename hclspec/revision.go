package hclspec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/lockfile"
)

// lockIndex finds pins by spelling.
type lockIndex struct {
	lock      *lockfile.Lock
	spellings map[string]map[string][]string // repo → commit → the spellings that are pinned to it
	names     map[Name]bool                  // names that resolve was asked for
}

func newLockIndex(lock *lockfile.Lock) *lockIndex {
	index := &lockIndex{lock: lock, spellings: map[string]map[string][]string{}, names: map[Name]bool{}}
	if lock == nil {
		return index
	}
	for repo, pins := range lock.Repos {
		byCommit := map[string][]string{}
		for spelling, rev := range pins.Revs {
			byCommit[rev.Commit] = append(byCommit[rev.Commit], spelling)
		}
		index.spellings[repo] = byCommit
	}
	return index
}

// resolve returns the commit that a spelling is pinned to, or else the spelling. Files append suffixes to revisions
// that the lock has replaced. So for a commit with a suffix, as in "<40 digits>^", resolve looks for a pin of the same
// suffix behind any spelling of that commit.
func (i *lockIndex) resolve(repo Address, spelling string) string {
	if i.lock == nil || repo == (Address{}) {
		return spelling
	}
	pins := i.lock.Repos[repo.Name].Revs
	if rev, ok := pins[spelling]; ok && rev.Commit != "" {
		i.note(Name{repo, spelling, rev.Commit})
		return rev.Commit
	}
	const digits = 40
	if len(spelling) > digits && strings.ContainsAny(spelling[digits:digits+1], "^~") {
		for _, other := range i.spellings[repo.Name][spelling[:digits]] {
			if rev, ok := pins[other+spelling[digits:]]; ok {
				i.note(Name{repo, other + spelling[digits:], rev.Commit})
				return rev.Commit
			}
		}
	}
	return spelling
}

// Name is a revision that the files do not name by its hash, so that it may mean another commit later.
type Name struct {
	Repo     Address
	Spelling string
	Commit   string // the commit that the lock has for it
}

func (i *lockIndex) note(n Name) {
	if !lockfile.ByHash(n.Spelling) {
		i.names[n] = true
	}
}

// sorted returns the names that resolve was asked for.
func (i *lockIndex) sorted() []Name {
	return slices.SortedFunc(maps.Keys(i.names), func(a, b Name) int {
		return cmp.Or(strings.Compare(a.Repo.Name, b.Repo.Name), strings.Compare(a.Spelling, b.Spelling))
	})
}

// unknown returns the reason why the repo has no such revision; empty: it has, or was not asked yet.
func (i *lockIndex) unknown(repo Address, spelling string) string {
	if i.lock == nil || repo == (Address{}) {
		return ""
	}
	return i.lock.Repos[repo.Name].Revs[i.resolve(repo, spelling)].Unknown
}
