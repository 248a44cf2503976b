package hclspec

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// A reference to a node is, while expressions are evaluated, a string with the address between two marks. So it passes
// through templates, lists, conditions and for expressions like any text, and no user can write one by hand.

// token is the reference to a.
func token(a Address) cty.Value { return cty.StringVal(funcs.Mark + a.String() + funcs.Mark) }

// splitTokens takes a string apart into text and references; false when a reference in it was taken apart.
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

// single is the one reference that a text consists of.
func (t Text) single() (Address, bool) {
	if len(t) == 1 && t[0].Ref != (Address{}) {
		return t[0].Ref, true
	}
	return Address{}, false
}

// withPaths are the kinds whose result is files, so that a reference to one can stand in a command.
func withPaths() []string { return []string{"wheel", "fetch", "task", "source"} }

// pathless is the first reference in the text that stands for no files.
func (t Text) pathless() (Address, bool) {
	for _, part := range t {
		if part.Ref != (Address{}) && !slices.Contains(withPaths(), part.Ref.Kind) {
			return part.Ref, true
		}
	}
	return Address{}, false
}
