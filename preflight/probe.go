package preflight

import (
	"path"
	"regexp"
	"strings"

	"github.com/benchgraph/benchgraph/internal/sh"
)

// probe tells how a probe would end in a tree, if it only looks at files: grep and test, joined by && and ||. Known is
// false for every other probe, and where a file cannot be read.
func (c *checker) probe(is *Issue, tree Tree) (passes, known bool) {
	if tree.IsZero() {
		return false, false
	}
	t := is.Probe
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
		if is.Image && s.Dir == "" {
			s.Dir = "/" // only what is named by $SRC is the tree's
		}
		before := ""
		if i > 0 {
			before = list[i-1].Then
		}
		if before == "&&" && !passes || before == "||" && passes {
			if s.Then == ";" && !final && !passes {
				return false, false // sh -e goes on after a list whose last command was not run
			}
			continue
		}
		if before == ";" && !passes {
			return false, true // sh -e ended there
		}
		if passes, known = c.look(&s, tree); !known {
			return false, false
		}
		if passes = passes != s.Not; s.Not && !passes && !final {
			return false, false
		}
	}
	return passes, len(list) > 0
}

// look tells how one grep or test ends.
func (c *checker) look(s *sh.Command, tree Tree) (passes, known bool) {
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
		p := program{Command: *s}
		name, ok := p.resolve(args[0])
		st, _ := c.files.stat(tree, name)
		return true, ok && st == isDir
	case "false":
		return false, true
	case "grep", "egrep", "fgrep":
		return c.grep(s, args, tree)
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
		p := program{Command: *s}
		name, ok := p.resolve(args[1])
		st, _ := c.files.stat(tree, name)
		if !ok || st == unknown {
			return false, false
		}
		is := map[string]bool{"-e": st != absent, "-f": st == isFile, "-d": st == isDir, "-s": st == isFile}
		result, understood := is[args[0]]
		return result != not, understood
	}
	return false, false
}

// grep tells whether a pattern is in files of a tree.
func (c *checker) grep(s *sh.Command, args []string, tree Tree) (passes, known bool) {
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
		p := program{Command: *s}
		at, ok := p.resolve(name)
		content, _, read := c.files.read(tree, at)
		st, _ := c.files.stat(tree, at)
		switch {
		case !ok || st == unknown || st == isDir || st == isFile && !read:
			return false, false
		case st == absent:
			missing = true
		case re.Match(content):
			return true, !missing
		}
	}
	return false, true
}

// basic turns a basic regular expression into an extended one; false where the two differ in more than brackets.
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
