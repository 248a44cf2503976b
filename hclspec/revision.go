package hclspec

import "strings"

// lockIndex finds pins by spelling.
type lockIndex struct {
	lock      *Lock
	spellings map[string]map[string][]string // repo → commit → the spellings that are pinned to it
}

func newLockIndex(lock *Lock) *lockIndex {
	index := &lockIndex{lock: lock, spellings: map[string]map[string][]string{}}
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

// resolve is the commit that a spelling is pinned to, or else the spelling. A pinned commit with a suffix, as in
// "<40 digits>^", is what the same suffix was pinned to behind any spelling of that commit: the file appends suffixes to
// revisions that the lock has replaced.
func (i *lockIndex) resolve(repo Address, spelling string) string {
	if i.lock == nil || repo == (Address{}) {
		return spelling
	}
	pins := i.lock.Repos[repo.Name].Revs
	if rev, ok := pins[spelling]; ok && rev.Commit != "" {
		return rev.Commit
	}
	const digits = 40
	if len(spelling) > digits && strings.ContainsAny(spelling[digits:digits+1], "^~") {
		for _, other := range i.spellings[repo.Name][spelling[:digits]] {
			if rev, ok := pins[other+spelling[digits:]]; ok {
				return rev.Commit
			}
		}
	}
	return spelling
}

// unknown says why the repo has no such revision; empty: nobody has asked it, or it has.
func (i *lockIndex) unknown(repo Address, spelling string) string {
	if i.lock == nil || repo == (Address{}) {
		return ""
	}
	return i.lock.Repos[repo.Name].Revs[i.resolve(repo, spelling)].Unknown
}
