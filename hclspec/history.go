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

// Question is what an expression asks of a repo's history. What a commit holds never changes, and neither does the
// answer.
type Question struct {
	Repo   string // name
	About  About
	Commit string // 40 digits
	Parent string // of Changed: 40 digits; empty: the first parent
	Path   string // of Exists and Content: slash-separated, inside the tree
}

// About says which question it is.
type About string

// The questions.
const (
	Changed   About = "changed"  // paths in which the commit differs from its parent
	Exists    About = "exists"   // whether the commit's tree has a path
	Content   About = "file"     // the bytes of a file
	Described About = "describe" // what git describe says; it depends on the tags, too, so the lock file keeps it
)

// Answer is what the history says. One of its fields is meant, by what the question is about.
type Answer struct {
	Paths  []string `json:"paths,omitempty"`
	Exists bool     `json:"exists,omitempty"`
	Text   []byte   `json:"text,omitempty"`
	Err    string   `json:"err,omitempty"` // why there is no answer; empty: there is one
}

// History answers what expressions ask of the histories of repos. It is false when it does not know: the value is
// unknown then, and the files are read again when the answer is there.
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

// historyFunctions are the functions over the histories of repos.
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

// ofHistory makes one function: the first argument is a commit, or a revision as a text.
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

// ask is the value of an answer.
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

// listOf is a list of texts. A path that is no text is left as far as it is one.
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

// which finds the repo and the commit that an argument means; false: the commit is not known yet.
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
	text, _ := splitTokens(repo.AsString())
	of, ok := text.single()
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
		// it has none: the mirror says whether that is the beginning of the history, or the end of a shallow clone
		return known, nil
	}
	both, err := l.pinned(of, parent.AsString(), &q.Parent)
	return known && both, err
}

// repoOf is the repo that a revision without a commit block belongs to: the only one, or one of which the lock,
// or a commit block, has it.
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

// pinned finds the commit of a revision. One that the lock does not have is noted, so that it is looked up.
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

// badRevision says why a text cannot be a revision; empty: it can.
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

// treePath brings a path inside a tree into its shortest form, or says that it leads out of it.
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
