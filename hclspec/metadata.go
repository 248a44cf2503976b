package hclspec

import (
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// AttributeInfo describes one attribute: whether it is part of the key of its block's nodes.
type AttributeInfo struct {
	Block     string `json:"block"` // kind, with the kinds of nested blocks after dots: benchmark.server.ready
	Attribute string `json:"attribute"`
	InKey     bool   `json:"in_key"`
}

// Attributes lists every attribute of every block, in the order of the language. The same table reads the blocks.
func Attributes() (all []AttributeInfo) {
	var list func(prefix string, s *eval.Schema)
	list = func(prefix string, s *eval.Schema) {
		for i, attr := range slices.Concat(s.Key, s.Free) {
			all = append(all, AttributeInfo{prefix + s.Kind, attr, i < len(s.Key)})
		}
		for _, nested := range s.Blocks {
			list(prefix+s.Kind+".", nested)
		}
	}
	for _, s := range schemas() {
		list("", s)
	}
	return all
}

// schemas returns the schema of every kind of block.
func schemas() []*eval.Schema {
	all := settingsSchemas()
	for _, k := range kinds() {
		all = append(all, k.schema)
	}
	return all
}

// Functions returns the names of the parameters of every function, by its name. The last one ends in "..." if it takes
// any number of arguments.
func Functions() map[string][]string {
	table := funcs.Table(nil)
	maps.Copy(table, (&loader{}).historyFunctions())
	return funcs.Parameters(table)
}
