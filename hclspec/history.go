package hclspec

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
)

// Question is a question of an expression to a repo's history. A commit never changes, and neither does the answer.
type Question struct {
	Repo   string // name
	About  About
	Commit string // 40 digits
	Parent string // for Changed: 40 digits; empty: the first parent
	Path   string // for Exists and Content: slash-separated, inside the tree
}

// About is the kind of a question.
type About string

// The questions.
const (
	Changed   About = "changed"  // paths in which the commit differs from its parent
	Exists    About = "exists"   // whether the commit's tree has a path
	Content   About = "file"     // the bytes of a file
	Described About = "describe" // output of git describe; it also depends on the tags, so the lock file keeps it
)

// Answer is the answer to a Question. The kind of the question determines which field is set.
type Answer struct {
	Paths  []string `json:"paths,omitempty"`
	Exists bool     `json:"exists,omitempty"`
	Text   []byte   `json:"text,omitempty"`
	Err    string   `json:"err,omitempty"` // reason why there is no answer; empty: there is one
}

// History answers the questions of expressions to the histories of repos. known is false if the answer is not known
// yet: the value is then unknown, and the files are read again when the answer is there.
type History interface {
	Ask(q Question) (a Answer, known bool)
}

// Revision is a revision that an expression named as a text, and whose commit is not known.
type Revision struct {
	Repo Address
	Rev  string
}

// maxContent is the size in bytes above which git_file refuses a file: it is for build files, not for data.
const maxContent = 1 << 20

// historyFunctions returns the functions over the histories of repos.
func (l *loader) historyFunctions() map[string]function.Function {
	rev := function.Parameter{Name: "rev", Type: cty.DynamicPseudoType}
	path := function.Parameter{Name: "path", Type: cty.String}
	return map[string]function.Function{
		"git_changed": l.ofHistory(Changed, cty.List(cty.String),
			function.Parameter{Name: "commit", Type: cty.DynamicPseudoType}),
		"git_exists":   l.ofHistory(Exists, cty.Bool, rev, path),
		"git_file":     l.ofHistory(Content, cty.String, rev, path),
		"git_describe": l.ofHistory(Described, cty.String, rev),
	}
}

// ofHistory returns one function. Its first argument is a commit, or a revision as a text.
func (l *loader) ofHistory(about About, result cty.Type, params ...function.Parameter) function.Function {
	return function.New(&function.Spec{
		Params: params,
		Type:   function.StaticReturnType(result),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			q := Question{About: about}
			known, err := l.which(args[0], &q)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if len(args) > 1 {
				if q.Path, err = treePath(args[1].AsString()); err != nil {
					return cty.NilVal, function.NewArgError(1, err)
				}
			}
			if !known {
				return cty.UnknownVal(result), nil
			}
			return l.ask(q, result)
		},
	})
}

// ask returns the value of the answer to a question.
func (l *loader) ask(q Question, result cty.Type) (cty.Value, error) {
	if q.About == Described && l.options.Lock != nil {
		if text := l.options.Lock.Repos[q.Repo].Described[q.Commit]; text != "" {
			return cty.StringVal(text), nil
		}
	}
	if l.options.History == nil {
		return cty.UnknownVal(result), nil
	}
	a, known := l.options.History.Ask(q)
	switch {
	case !known:
		return cty.UnknownVal(result), nil
	case a.Err != "":
		return cty.NilVal, errors.New(a.Err)
	case q.About == Exists:
		return cty.BoolVal(a.Exists), nil
	case q.About == Changed:
		return listOf(a.Paths), nil
	case len(a.Text) > maxContent:
		return cty.NilVal, fmt.Errorf("%s has %d bytes; git_file reads files of up to %d", q.Path, len(a.Text),
			maxContent)
	case !utf8.Valid(a.Text) || strings.Contains(string(a.Text), funcs.Mark):
		return cty.NilVal, fmt.Errorf("%s of commit %.12s is no text in UTF-8", q.Path, q.Commit)
	}
	return cty.StringVal(string(a.Text)), nil
}

// listOf returns a list of texts. The bytes of a path that are not UTF-8 are replaced.
func listOf(texts []string) cty.Value {
	if len(texts) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	all := make([]cty.Value, len(texts))
	for i, text := range texts {
		all[i] = cty.StringVal(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), funcs.Mark, ""))
	}
	return cty.ListVal(all)
}

// which finds the repo and the commit of an argument; false: the commit is not known yet.
func (l *loader) which(v cty.Value, q *Question) (known bool, err error) {
	if v.Type() == cty.String {
		repo, err := l.repoOf(v.AsString())
		if err != nil {
			return false, err
		}
		q.Repo = repo.Name
		return l.pinned(repo, v.AsString(), &q.Commit)
	}
	if !v.Type().IsObjectType() || !v.Type().HasAttribute("rev") || !v.Type().HasAttribute("repo") {
		return false, errors.New("it must be a commit, as each.commit or commit[\"NAME\"], or a revision")
	}
	repo, rev := v.GetAttr("repo"), v.GetAttr("rev")
	if repo.IsNull() {
		return false, errors.New("the commit belongs to no repo")
	}
	if !rev.IsKnown() || !repo.IsKnown() || rev.Type() != cty.String || repo.Type() != cty.String || rev.IsNull() {
		return false, nil
	}
	of, ok := onlyToken(repo.AsString())
	if !ok {
		return false, errors.New("it is no commit: its repo is no reference")
	}
	q.Repo = of.Name
	known, err = l.pinned(of, rev.AsString(), &q.Commit)
	if err != nil || q.About != Changed || !v.Type().HasAttribute("parent") {
		return known, err
	}
	parent := v.GetAttr("parent")
	if !parent.IsKnown() || parent.IsNull() || parent.Type() != cty.String {
		return false, nil
	}
	if standard := parent.AsString(); strings.HasSuffix(standard, "^") && l.lock.unknown(of, standard) != "" {
		// the commit has no parent: the mirror tells whether the history begins there, or a shallow clone ends there
		return known, nil
	}
	both, err := l.pinned(of, parent.AsString(), &q.Parent)
	return known && both, err
}

// repoOf returns the repo of a revision without a commit block: the only repo, or one for which the lock or a commit
// block has the revision.
func (l *loader) repoOf(rev string) (Address, error) {
	if only := l.onlyRepo(); only != (Address{}) {
		return only, nil
	}
	var found []Address
	for _, d := range l.of("repo") {
		if len(l.lock.spellings[d.Name][rev]) > 0 {
			found = append(found, d.address)
		}
	}
	if l.commits != nil && len(found) == 0 {
		for _, c := range l.commits.list {
			if c.Rev == rev || c.Parent == rev {
				found = append(found, c.Repo)
				break
			}
		}
	}
	switch {
	case len(found) > 0:
		return found[0], nil // the same commit is the same tree in each
	case len(l.of("repo")) == 0:
		return Address{}, errors.New("there is no repo block to look into")
	}
	return Address{},
		errors.New("there are several repos: give the commit, as in each.commit or commit[\"NAME\"], instead of a " +
			"revision")
}

// pinned finds the commit of a revision. A revision that is not in the lock is recorded, so that it is looked up.
func (l *loader) pinned(repo Address, rev string, commit *string) (known bool, err error) {
	if why := badRevision(rev); why != "" {
		return false, errors.New(why)
	}
	if why := l.lock.unknown(repo, rev); why != "" {
		return false, errors.New(strings.TrimSuffix(why, "."))
	}
	if *commit = l.lock.resolve(repo, rev); lockfile.ObjectName(*commit) {
		return true, nil
	}
	if !l.shadow && len(l.spec.Revisions) < maxInstances {
		l.spec.Revisions = append(l.spec.Revisions, Revision{repo, rev})
	}
	return false, nil
}

// badRevision returns the reason why a text cannot be a revision; empty: it can.
func badRevision(rev string) string {
	switch {
	case rev == "":
		return "a revision cannot be empty"
	case strings.HasPrefix(rev, "-") || strings.ContainsFunc(rev, func(c rune) bool {
		return c <= ' ' || c == 0x7f
	}) || strings.Contains(rev, ".."):
		return fmt.Sprintf("%q cannot be a revision: it begins with a dash, or holds a space or two dots", rev)
	}
	return ""
}

// treePath returns the shortest form of a path inside a tree. The error says that the path leads out of the tree.
func treePath(name string) (string, error) {
	clean, err := project.Clean(name)
	switch {
	case strings.Contains(name, funcs.Mark):
		return "", errors.New("a reference is no path inside a tree")
	case err != nil || clean == ".":
		return "", fmt.Errorf("%q is no path inside the tree of a commit", name)
	case len(clean) > 4096 || strings.ContainsFunc(clean, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "", fmt.Errorf("%q is no path: it is too long, or holds a control character", name[:min(len(name), 60)])
	}
	return clean, nil
}
