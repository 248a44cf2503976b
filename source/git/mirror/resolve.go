package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git/command"
)

// UnknownRev is the error for a revision that names no commit of a repository, or several.
type UnknownRev struct {
	Rev       string
	Location  string
	Reason    string
	Near      []string // similar branches and tags; for an ambiguous hash, the possible commits
	Ambiguous bool
	Shallow   bool // the repository lacks part of its history
}

func (e *UnknownRev) Error() string {
	s := fmt.Sprintf("revision %q %s %s", e.Rev, e.Reason, e.Location)
	if len(e.Near) == 0 {
		return s
	}
	if e.Ambiguous {
		return s + ": " + strings.Join(e.Near, ", ")
	}
	return fmt.Sprintf("%s; did you mean %q?", s, e.Near[0])
}

// A revision is a name or hash with ~ and ^ steps: no path, range, search or reflog.
var revision = lazyregexp.New(`^(@|[^-@\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*)((~|\^)[0-9]*)*$`)

const maxRev = 250

// Spelled reports whether a text can be a revision.
func Spelled(rev string) bool { return len(rev) <= maxRev && revision().MatchString(rev) }

// Resolve returns the commit of each revision: a hash or its beginning, a branch, a tag or HEAD, each with any suffix
// such as ^, ^2 or ~3. Revisions that the mirror lacks are fetched once. Each unknown revision is an *UnknownRev in the
// joined error; the other revisions are returned nevertheless.
func (m *Mirror) Resolve(ctx context.Context, revs []string) (map[string]Resolved, error) {
	found := map[string]Resolved{}
	var wrong []error
	var wanted []string
	for _, rev := range revs {
		if !Spelled(rev) || strings.Contains(rev, "..") || strings.Contains(rev, "@{") {
			wrong = append(wrong, &UnknownRev{Rev: rev, Location: m.Shown,
				Reason: "is not the spelling of a revision of"})
		} else if !slices.Contains(wanted, rev) {
			wanted = append(wanted, rev)
		}
	}
	named := func(ctx context.Context, revs []string) error { return m.FetchNamed(ctx, revs, false) }
	steps := []func(context.Context, []string) error{nil, named, m.fetchHashes}
	if m.kind != remote {
		// following its refs costs a few milliseconds, and they move: a bundle may have been written anew
		steps = steps[1:]
	}
	for _, step := range steps {
		if len(wanted) == 0 {
			break
		}
		if step != nil {
			if err := step(ctx, wanted); err != nil {
				return found, errors.Join(append(wrong, err)...)
			}
		}
		var err error
		if wanted, err = m.lookUp(ctx, wanted, found); err != nil {
			return found, err
		}
	}
	for _, rev := range wanted {
		unknown, err := m.unknown(ctx, rev)
		if err != nil {
			return found, err
		}
		wrong = append(wrong, unknown)
	}
	return found, errors.Join(wrong...)
}

// lookUp resolves revisions only in the mirror, with one git process. It returns the missing ones.
func (m *Mirror) lookUp(ctx context.Context, revs []string, found map[string]Resolved) ([]string, error) {
	if len(revs) == 0 {
		return nil, nil
	}
	var in strings.Builder
	for _, rev := range revs {
		fmt.Fprintf(&in, "%s^{commit}\n%s^{tree}\n", rev, rev)
	}
	out, err := m.Git.Output(ctx, command.Call{Args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"},
		Stdin: in.String()})
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2*len(revs) {
		return nil, fmt.Errorf("git cat-file: %d answers to %d questions", len(lines), 2*len(revs))
	}
	var missing []string
	for i, rev := range revs {
		commit, isCommit := strings.CutSuffix(lines[2*i], " commit")
		tree, isTree := strings.CutSuffix(lines[2*i+1], " tree")
		if isCommit && isTree && IsHash(commit) && IsHash(tree) {
			found[rev] = Resolved{Commit: commit, Tree: tree}
			continue
		}
		missing = append(missing, rev)
	}
	return missing, nil
}

// FetchNamed fetches the refs that the revisions may name: branches, tags, HEAD, and full ref names.
func (m *Mirror) FetchNamed(ctx context.Context, revs []string, again bool) error {
	var extra []string
	for _, rev := range revs {
		name := base(rev)
		switch {
		case name == "HEAD" || name == "@":
			extra = append(extra, "+HEAD:"+headRef)
		case strings.HasPrefix(name, "refs/") && !strings.HasPrefix(name, "refs/heads/") &&
			!strings.HasPrefix(name, "refs/tags/"):
			extra = append(extra, "+"+name+":"+name)
		}
	}
	slices.Sort(extra)
	extra = slices.Compact(extra)
	err := m.fetchRefs(ctx, extra, again)
	if fe, ok := errors.AsType[*FetchError](err); ok && len(extra) > 0 &&
		strings.Contains(fe.Evidence, "couldn't find remote ref") {
		// Do not let one missing name keep the others away. It is later reported as unknown.
		return m.fetchRefs(ctx, nil, again)
	}
	return err
}

// fetchHashes fetches full hashes that no branch or tag reaches. If the server refuses, the hash is unknown.
func (m *Mirror) fetchHashes(ctx context.Context, revs []string) error {
	if m.kind != remote {
		return nil
	}
	for _, rev := range revs {
		id := base(rev)
		if !IsHash(id) {
			continue
		}
		err := m.fetchHash(ctx, id)
		if fe, ok := errors.AsType[*FetchError](err); ok && !fe.Class.Retried() {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchHash fetches one commit, only once in the life of the Mirror.
func (m *Mirror) fetchHash(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fetched[id] {
		return nil
	}
	err := m.fetch(ctx, want{specs: []string{id}})
	if err == nil {
		m.fetched[id] = true
	}
	return err
}

// base returns the name or hash at the beginning of a revision.
func base(rev string) string {
	if i := strings.IndexAny(rev, "^~"); i >= 0 {
		return rev[:i]
	}
	return rev
}

var abbreviated = lazyregexp.New(`^[0-9a-f]{4,39}$`)

// unknown returns an error with everything that is known about a revision without a whole commit.
func (m *Mirror) unknown(ctx context.Context, rev string) (*UnknownRev, error) {
	commit, err := m.Git.Output(ctx, command.Call{Args: []string{"rev-parse", "--quiet", "--verify", rev + "^{commit}"},
		OK: []int{1, 128}})
	if err != nil {
		return nil, err
	}
	if id := strings.TrimSpace(commit); IsHash(id) && m.kind != remote {
		return nil, m.incomplete([]string{id + "^{tree}"})
	}
	u := &UnknownRev{Rev: rev, Location: m.Shown, Reason: "is not in", Shallow: m.local.shallow}
	name := base(rev)
	if abbreviated().MatchString(name) {
		out, err := m.Git.Output(ctx, command.Call{Args: []string{"rev-parse", "--disambiguate=" + name}})
		if err != nil {
			return nil, err
		}
		found := map[string]Resolved{}
		if _, err := m.lookUp(ctx, strings.Fields(out), found); err != nil {
			return nil, err
		}
		if len(found) > 1 {
			u.Reason, u.Ambiguous, u.Near = "stands for several commits of", true, slices.Sorted(maps.Keys(found))
			return u, nil
		}
	}
	if name != rev {
		found := map[string]Resolved{}
		if _, err := m.lookUp(ctx, []string{name}, found); err != nil {
			return nil, err
		}
		if c, ok := found[name]; ok {
			u.Reason = fmt.Sprintf("leads nowhere: %s is commit %s, which has no %s in", name, c.Commit[:12],
				strings.TrimPrefix(rev, name))
			if m.local.shallow {
				u.Reason += " the shallow clone"
			}
			return u, nil
		}
	}
	out, err := m.Git.Output(ctx, command.Call{Args: []string{"for-each-ref", "--format=%(refname)", "refs/heads",
		"refs/tags", "refs/remotes"}})
	if err != nil {
		return nil, err
	}
	u.Near = near(name, strings.Fields(out))
	if slices.Contains(u.Near, name) { // a tag of a file, or a branch of a damaged repository
		u.Reason, u.Near = "leads to no commit in", nil
	}
	return u, nil
}

// near returns up to three names that are similar to the wanted one.
func near(name string, refs []string) []string {
	type scored struct {
		name string
		like float64
	}
	var best []scored
	for _, ref := range refs {
		short := ref
		for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/remotes/"} {
			short = strings.TrimPrefix(short, prefix)
		}
		if like := levenshtein.Match(name, short, nil); like >= 0.7 {
			best = append(best, scored{short, like})
		}
	}
	slices.SortFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.like, a.like), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, s := range best {
		if !slices.Contains(names, s.name) && len(names) < 3 {
			names = append(names, s.name)
		}
	}
	return names
}
