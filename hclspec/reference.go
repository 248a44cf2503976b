package hclspec

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// While expressions are evaluated, a reference to a node is a string: the address between two marks. So it passes
// through templates, lists, conditions and for expressions like any text, and no user can write one by hand.

// token returns the reference to a.
func token(a Address) cty.Value { return cty.StringVal(funcs.Mark + a.String() + funcs.Mark) }

// splitTokens splits a string into literals and references; false: a reference in it was taken apart.
func splitTokens(s string) (Text, bool) {
	if !strings.Contains(s, funcs.Mark) {
		if s == "" {
			return Text{}, true
		}
		return Text{{Literal: s}}, true
	}
	pieces := strings.Split(s, funcs.Mark)
	if len(pieces)%2 == 0 {
		return nil, false
	}
	var text Text
	for i, piece := range pieces {
		switch {
		case i%2 == 1:
			a, err := ParseAddress(piece)
			if err != nil {
				return nil, false
			}
			text = append(text, Part{Ref: a})
		case piece != "":
			text = append(text, Part{Literal: piece})
		}
	}
	return text, true
}

// onlyToken returns the reference if the string consists of exactly one.
func onlyToken(s string) (Address, bool) {
	inner, begins := strings.CutPrefix(s, funcs.Mark)
	inner, ends := strings.CutSuffix(inner, funcs.Mark)
	if !begins || !ends {
		return Address{}, false
	}
	a, err := ParseAddress(inner)
	return a, err == nil
}

// withPaths returns the kinds of nodes whose results are files, so that commands can name them.
func withPaths() []string { return []string{"wheel", "fetch", "task", "source"} }

// pathless returns the first reference in the text to a node without files.
func (t Text) pathless() (Address, bool) {
	for _, part := range t {
		if part.Ref != (Address{}) && !slices.Contains(withPaths(), part.Ref.Kind) {
			return part.Ref, true
		}
	}
	return Address{}, false
}
