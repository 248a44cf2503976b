package pin

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/tasks"
)

// maxRounds bounds how often the files are evaluated again because an answer about a history led to new questions.
const maxRounds = 20

// maxText bounds the bytes that are read of a file of a history.
const maxText = 1 << 20

// resolveHistory answers the questions of expressions about the histories of repos, all questions of one evaluation
// together, until there are no more. It reports whether the lock has changed.
func (p *Resolver) resolveHistory(ctx context.Context) (changed bool, diags hcl.Diagnostics) {
	if p.History == nil {
		return false, nil
	}
	for range maxRounds {
		wanted := p.History.Wanted()
		if len(wanted) == 0 {
			return changed, diags
		}
		for i := range p.Spec.Repos {
			repo := &p.Spec.Repos[i]
			var asked []hclspec.Question
			for _, q := range wanted {
				if q.Repo == repo.Address.Name && !p.aboutUnknown(q) {
					asked = append(asked, q)
				}
			}
			if len(asked) == 0 {
				continue
			}
			pins := slices.ContainsFunc(asked, func(q hclspec.Question) bool { return q.About == hclspec.Described })
			if p.Locked && pins {
				return changed, append(diags, incomplete(repo.Range,
					"What git describe says of commits of %s is not pinned in the lock file", repo.Address))
			}
			if err := p.answer(ctx, repo, asked); err != nil {
				return changed, append(diags, p.unreadable(repo.Address, err))
			}
			changed = changed || pins
		}
		if err := p.History.Save(); err != nil {
			fmt.Fprintf(p.Progress, "%v\n", err) // the question is asked again next time
		}
		if more := p.Reload(); more.HasErrors() {
			return changed, append(diags, more...)
		}
		revs, more := p.resolveRevisions(ctx)
		if changed, diags = changed || revs, append(diags, more...); diags.HasErrors() {
			return changed, diags
		}
		if revs {
			if more := p.Reload(); more.HasErrors() {
				return changed, append(diags, more...)
			}
		}
	}
	return changed, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Too many questions",
		Detail: fmt.Sprintf("The answers of git_ functions led to new questions %d times. Ask with fewer functions "+
			"in each other.", maxRounds)})
}

// aboutUnknown reports whether a question names a commit that its repo does not have. The question is older than the
// look-up of the commit; by now, the expression that asked has a mistake of its own.
func (p *Resolver) aboutUnknown(q hclspec.Question) bool {
	revs := p.lockOf(q.Repo).Revs
	return revs[q.Commit].Unknown != "" || q.Parent != "" && revs[q.Parent].Unknown != ""
}

// answer answers questions from a repo's mirror, with one process for each kind of question.
func (p *Resolver) answer(ctx context.Context, repo *hclspec.Repo, questions []hclspec.Question) error {
	mirror, err := p.Mirror(ctx, repo.Address)
	if err != nil {
		return err
	}
	end := p.Asker.Watch(repo.URL+repo.Path, "the history of "+repo.Address.String())
	defer end()
	about := map[hclspec.About][]hclspec.Question{}
	for _, q := range questions {
		about[q.About] = append(about[q.About], q)
	}
	if err := p.answerChanged(ctx, mirror, about[hclspec.Changed]); err != nil {
		return err
	}
	if err := p.answerPlaces(ctx, mirror, slices.Concat(about[hclspec.Exists], about[hclspec.Content])); err != nil {
		return err
	}
	return p.answerDescribed(ctx, mirror, repo, about[hclspec.Described])
}

func (p *Resolver) answerChanged(ctx context.Context, mirror *git.Mirror, questions []hclspec.Question) error {
	if len(questions) == 0 {
		return nil
	}
	steps := make([]git.Step, len(questions))
	for i, q := range questions {
		steps[i] = git.Step{From: q.Parent, To: q.Commit}
	}
	paths, err := mirror.Changed(ctx, steps)
	if err != nil {
		return err
	}
	for i, q := range questions {
		p.History.Keep(q, hclspec.Answer{Paths: paths[i]})
	}
	return nil
}

// answerPlaces answers which paths exist, and which text a file has.
func (p *Resolver) answerPlaces(ctx context.Context, mirror *git.Mirror, questions []hclspec.Question) error {
	if len(questions) == 0 {
		return nil
	}
	places := make([]git.Place, len(questions))
	for i, q := range questions {
		places[i] = git.Place{Commit: q.Commit, Path: q.Path}
	}
	found, err := mirror.Find(ctx, places)
	if err != nil {
		return err
	}
	var files []git.Entry
	var asked []hclspec.Question
	for i, q := range questions {
		if q.About == hclspec.Exists {
			p.History.Keep(q, hclspec.Answer{Exists: found[i].Exists()})
			continue
		}
		files, asked = append(files, found[i]), append(asked, q)
	}
	return mirror.Contents(ctx, files, maxText, func(i int, text []byte, err error) {
		q := asked[i]
		if err != nil {
			p.History.Keep(q, hclspec.Answer{
				Err: fmt.Sprintf("%s of commit %s: %v", q.Path, tasks.ShortRev(q.Commit), err)})
			return
		}
		p.History.Keep(q, hclspec.Answer{Text: text})
	})
}

// answerDescribed pins the answers of git describe, since tags move.
func (p *Resolver) answerDescribed(ctx context.Context, mirror *git.Mirror, repo *hclspec.Repo,
	questions []hclspec.Question) error {
	if len(questions) == 0 {
		return nil
	}
	commits := make([]string, len(questions))
	for i, q := range questions {
		commits[i] = q.Commit
	}
	texts, err := mirror.Describe(ctx, commits)
	if err != nil {
		return err
	}
	l := p.lockOf(repo.Address.Name)
	if l.Described == nil {
		l.Described = map[string]string{}
		p.Lock.Repos[repo.Address.Name] = l
	}
	for _, q := range questions {
		if text := texts[q.Commit]; text != "" {
			l.Described[q.Commit] = text
			continue
		}
		p.History.Pass(q, hclspec.Answer{Err: fmt.Sprintf("no tag with a digit in its name leads to commit %s",
			tasks.ShortRev(q.Commit))})
	}
	return nil
}
