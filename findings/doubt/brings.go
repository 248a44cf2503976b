package doubt

import (
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
)

// Brings returns those of the changed files that the measured command of a benchmark names, or that a program which it
// names runs by itself: the candidate changes the files that measure it. own reports whether a node is made of a
// candidate. If the client's tree is not, only data made of a candidate and laid beside the tree's files counts.
func Brings(b *hclspec.Benchmark, changed []string, own func(hclspec.Address) bool) (named []string) {
	var roots []string // directories with files of the candidate; "" is the working directory
	if b.Client == (hclspec.Address{}) || own(b.Client) {
		roots = append(roots, "")
	}
	for _, d := range b.Data {
		if own(d.Ref) {
			roots = append(roots, path.Clean(d.Name)+"/")
		}
	}
	words := strings.FieldsFunc(sample.CommandLine(b.Command), func(r rune) bool {
		return strings.ContainsRune(" \t\n;|&()<>\"'=", r)
	})
	for i, word := range words {
		before := words[max(0, i-1)]
		for _, file := range changed {
			names := slices.Contains(roots, "") && (before == "-m" && isModule(word, file) ||
				runs(words[:i+1], words[i+1:], file))
			for _, root := range roots {
				rest, below := strings.CutPrefix(path.Clean(word), root)
				names = names || below && namesFile(rest, file)
			}
			if names && !slices.Contains(named, file) {
				named = append(named, file)
			}
		}
	}
	return named
}

// namesFile reports whether a word of a command names a file of a tree. The command may have gone into a directory of
// the tree, or may see the tree in another directory.
func namesFile(word, file string) bool {
	return word == file || strings.HasSuffix(word, "/"+file) ||
		path.Ext(word) != "" && strings.HasSuffix(file, "/"+word)
}

// isModule reports whether a file is the Python module of that name, or the program of the package. The packages may
// lie in any directory.
func isModule(name, file string) bool {
	module, python := strings.CutSuffix(file, ".py")
	module = "/" + strings.TrimSuffix(module, "/__main__")
	return python && strings.HasSuffix(module, "/"+strings.ReplaceAll(name, ".", "/"))
}

// runs reports whether a program, the last of some words of a command, runs a file that nobody names. args are the
// words after it.
func runs(program, args []string, file string) bool {
	dir, name := path.Split(file)
	switch words := len(program); path.Base(program[words-1]) {
	case "test":
		return words > 1 && program[words-2] == "go" && strings.HasSuffix(name, "_test.go") &&
			slices.ContainsFunc(args, func(arg string) bool { return inPackage(arg, path.Clean(dir)) })
	case "pytest", "py.test":
		return name == "conftest.py"
	case "make":
		return name == "Makefile" || name == "makefile" || name == "GNUmakefile"
	}
	return false
}

// inPackage reports whether an argument of go means the package in a directory.
func inPackage(arg, dir string) bool {
	below, all := strings.CutSuffix(arg, "...")
	below = path.Clean(below)
	return below == dir || strings.HasSuffix(dir, "/"+below) ||
		all && (below == "." || strings.HasPrefix(dir, below+"/"))
}
