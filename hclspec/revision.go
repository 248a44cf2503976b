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
	names     map[Name]bool                  // that were asked for
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

// resolve is the commit that a spelling is pinned to, or else the spelling. A pinned commit with a suffix, as in "<40
// digits>^", is what the same suffix was pinned to behind any spelling of that commit: the file appends suffixes to
// revisions that the lock has replaced.
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

// Name is a revision that the files name otherwise than by a hash, so that it may come to stand for another commit.
type Name struct {
	Repo     Address
	Spelling string
	Commit   string // that it is pinned to
}

func (i *lockIndex) note(n Name) {
	if !lockfile.ByHash(n.Spelling) {
		i.names[n] = true
	}
}

// sorted are the names that were asked for.
func (i *lockIndex) sorted() []Name {
	return slices.SortedFunc(maps.Keys(i.names), func(a, b Name) int {
		return cmp.Or(strings.Compare(a.Repo.Name, b.Repo.Name), strings.Compare(a.Spelling, b.Spelling))
	})
}

// unknown says why the repo has no such revision; empty: nobody has asked it, or it has.
func (i *lockIndex) unknown(repo Address, spelling string) string {
	if i.lock == nil || repo == (Address{}) {
		return ""
	}
	return i.lock.Repos[repo.Name].Revs[i.resolve(repo, spelling)].Unknown
}
