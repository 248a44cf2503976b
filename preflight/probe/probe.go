// Package probe predicts, from the files of a revision, how the probe of a known issue ends.
package probe

import (
	"path"
	"regexp"
	"strings"

	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

// Passes predicts how a probe would end in a tree, if the probe only looks at files: grep and test, joined by && and
// ||. In an image, a probe finds the tree only by $SRC. known is false for every other probe, and if a file cannot be
// read.
func Passes(t program.Text, image bool, tree revision.Tree, f *revision.Files) (passes, known bool) {
	if tree.IsZero() {
		return false, false
	}
	list := sh.ParseArgv(t.Argv, nil)
	if t.Argv == nil {
		var ok bool
		if list, ok = sh.Parse(t.Shell, nil); !ok {
			return false, false
		}
	}
	passes = true
	for i, s := range list {
		final := i == len(list)-1
		if s.Maybe || s.Lost || len(s.Assigns) > 0 || s.Then == "|" || s.Then == "&" || len(s.Words) == 0 ||
			len(s.Writes) > 1 {
			return false, false
		}
		if image && s.Dir == "" {
			s.Dir = "/" // only paths with $SRC lead into the tree
		}
		before := ""
		if i > 0 {
			before = list[i-1].Then
		}
		if before == "&&" && !passes || before == "||" && passes {
			if s.Then == ";" && !final && !passes {
				return false, false // sh -e does not stop at a list whose last command did not run
			}
			continue
		}
		if before == ";" && !passes {
			return false, true // sh -e stopped there
		}
		if passes, known = look(&s, tree, f); !known {
			return false, false
		}
		if passes = passes != s.Not; s.Not && !passes && !final {
			return false, false
		}
	}
	return passes, len(list) > 0
}

// look predicts how one grep or test ends.
func look(s *sh.Command, tree revision.Tree, f *revision.Files) (passes, known bool) {
	args := make([]string, 0, len(s.Words))
	for _, w := range s.Words[1:] {
		if w.Partial {
			return false, false
		}
		args = append(args, w.Text)
	}
	switch path.Base(s.Words[0].Text) {
	case "true", ":":
		return true, true
	case "cd":
		if len(args) != 1 {
			return false, false
		}
		p := program.Program{Command: *s}
		name, ok := p.Resolve(args[0])
		st, _ := f.Stat(tree, name)
		return true, ok && st == revision.IsDir
	case "false":
		return false, true
	case "grep", "egrep", "fgrep":
		return grep(s, args, tree, f)
	case "test", "[":
		if n := len(args); n > 0 && args[n-1] == "]" {
			args = args[:n-1]
		}
		not := len(args) == 3 && args[0] == "!"
		if not {
			args = args[1:]
		}
		if len(args) != 2 {
			return false, false
		}
		p := program.Program{Command: *s}
		name, ok := p.Resolve(args[1])
		st, _ := f.Stat(tree, name)
		if !ok || st == revision.Unknown {
			return false, false
		}
		is := map[string]bool{"-e": st != revision.Absent, "-f": st == revision.IsFile, "-d": st == revision.IsDir,
			"-s": st == revision.IsFile}
		result, understood := is[args[0]]
		return result != not, understood
	}
	return false, false
}

// grep predicts whether a grep finds its pattern in files of a tree.
func grep(s *sh.Command, args []string, tree revision.Tree, f *revision.Files) (passes, known bool) {
	fixed, fold, wordwise, extended, pattern, given := path.Base(s.Words[0].Text) == "fgrep", false, false,
		path.Base(s.Words[0].Text) == "egrep", "", false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
		option := args[0]
		args = args[1:]
		if option == "--" {
			break
		}
		for _, letter := range option[1:] {
			switch letter {
			case 'q', 's', 'h', 'n', 'H':
			case 'F':
				fixed = true
			case 'E':
				extended = true
			case 'i':
				fold = true
			case 'w':
				wordwise = true
			case 'e':
				if len(args) == 0 || given {
					return false, false
				}
				pattern, given, args = args[0], true, args[1:]
			default:
				return false, false
			}
		}
	}
	if !given && len(args) > 0 {
		pattern, args = args[0], args[1:]
	}
	switch {
	case fixed:
		pattern = regexp.QuoteMeta(pattern)
	case !extended:
		var ok bool
		if pattern, ok = basic(pattern); !ok {
			return false, false
		}
	}
	if wordwise {
		pattern = `\b(?:` + pattern + `)\b`
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil || len(args) == 0 {
		return false, false
	}
	missing := false
	for _, name := range args {
		p := program.Program{Command: *s}
		at, ok := p.Resolve(name)
		content, _, read := f.Read(tree, at)
		st, _ := f.Stat(tree, at)
		switch {
		case !ok || st == revision.Unknown || st == revision.IsDir || st == revision.IsFile && !read:
			return false, false
		case st == revision.Absent:
			missing = true
		case re.Match(content):
			return true, !missing
		}
	}
	return false, true
}

// basic turns a basic regular expression into an extended one; false if they differ in more than the escapes.
func basic(pattern string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c == '\\' && i+1 < len(pattern) {
			i++
			switch next := pattern[i]; next {
			case '(', ')', '|', '{', '}', '+', '?':
				b.WriteByte(next)
			case '.', '*', '[', ']', '\\', '^', '$', '/', 'b', 'w', 's':
				b.WriteByte('\\')
				b.WriteByte(next)
			default:
				return "", false
			}
			continue
		}
		if strings.IndexByte("(){}|+?", c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
