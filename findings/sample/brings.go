package sample

import (
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
)

// Brings returns those of the files that a candidate changes which its measured command names: then it brings with it
// what measures it. own says what is made of a candidate. Where the tree of a client is none of that, only what is laid
// beside its files counts.
func Brings(b *hclspec.Benchmark, changed []string, own func(hclspec.Address) bool) (named []string) {
	var roots []string // directories with files of the candidate; empty: the working directory
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
				if below && is(rest, file) && !slices.Contains(named, file) {
					named = append(named, file)
				}
			}
		}
	}
	return named
}

// is says whether a word of a command is a file of a tree: the command may have gone into a directory of the tree, or
// have the tree in another one.
func is(word, file string) bool {
	return word == file || strings.HasSuffix(word, "/"+file) ||
		path.Ext(word) != "" && strings.HasSuffix(file, "/"+word)
}
