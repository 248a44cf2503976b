package sample

import (
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
)

// Brings returns those of the changed files that the measured command of a benchmark names: the candidate changes the
// files that measure it. own reports whether a node is made of a candidate. If the client's tree is not, only data made
// of a candidate and laid beside the tree's files counts.
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
	for _, word := range strings.FieldsFunc(CommandLine(b.Command), func(r rune) bool {
		return strings.ContainsRune(" \t\n;|&()<>\"'=", r)
	}) {
		word = path.Clean(word)
		for _, root := range roots {
			rest, below := strings.CutPrefix(word, root)
			for _, file := range changed {
				if below && namesFile(rest, file) && !slices.Contains(named, file) {
					named = append(named, file)
				}
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
