package stats

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

func TestEveryKindOfCaveatIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "evidence.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, v := range spec.Values {
				kind, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				declared = append(declared, kind)
			}
		}
		return true
	})
	if listed := CaveatKinds(); len(listed) < 20 || !slices.Equal(listed, declared) {
		t.Errorf("listed are %q, and declared are %q", listed, declared)
	}
}
