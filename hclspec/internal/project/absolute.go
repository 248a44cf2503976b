package project

import (
	"path/filepath"
	"slices"
	"strings"
)

// Absolute holds the paths that the files of a project made absolute.
type Absolute struct {
	Home string          // of the project, absolute
	Made map[string]bool // the paths
}

// Absolute makes a path absolute: a relative one begins in the project's directory.
func (d *Dir) Absolute(name string) string {
	name = filepath.FromSlash(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.home, name)
	}
	name = filepath.Clean(name)
	d.absolute.Made[name] = true
	return name
}

// Some reports whether there are any paths.
func (a Absolute) Some() bool { return len(a.Made) > 0 }

// Named returns the absolute paths in a text that a command would read. made are paths that Absolute made, or paths
// below those; literal are all others. It does not matter whether a path exists.
func (a Absolute) Named(text string) (made, literal []string) {
	const home = "/\x00" // stands for the project's directory, whose path may contain pathEnds
	if len(a.Home) > 1 {
		text = strings.ReplaceAll(text, a.Home, home)
	}
	for at := 0; at < len(text); {
		word := text[at:]
		if end := strings.IndexAny(word, pathEnds); end >= 0 {
			word = word[:end]
		}
		i := strings.IndexByte(word, '/')
		whole := i == 0 || i > 0 && (word[0] == '-' || word[:i] == "@") // as in -I/usr/include
		if whole && !written(text[:at+i]) {
			name := filepath.Clean(word[i:])
			if rest, ok := strings.CutPrefix(name, home); ok {
				name = a.Home + rest
			}
			if a.has(name) {
				made = append(made, name)
			} else {
				literal = append(literal, name)
			}
		}
		at += len(word) + 1
	}
	return made, literal
}

// has reports whether Absolute made a path, or a directory above it.
func (a Absolute) has(name string) bool {
	for above := filepath.Dir(name); above != name; name, above = above, filepath.Dir(above) {
		if a.Made[name] {
			return true
		}
	}
	return false
}

// pathEnds are the characters that end a path in a command.
const pathEnds = " \t\r\n\"'`;&|<>(){}$:,="

// written reports whether a command that begins with before writes to the file that follows, so that the file is no
// input.
func written(before string) bool {
	before = strings.TrimRight(before, " \t\"'")
	if strings.HasSuffix(before, ">") {
		return true
	}
	words := strings.FieldsFunc(before, func(r rune) bool { return strings.ContainsRune(" \t\r\n;&|(){}", r) })
	for len(words) > 0 && strings.HasPrefix(words[len(words)-1], "-") {
		words = words[:len(words)-1]
	}
	return len(words) > 0 && slices.Contains([]string{"touch", "mkdir", "rm", "tee"}, words[len(words)-1])
}
