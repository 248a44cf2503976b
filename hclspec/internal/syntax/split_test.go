package syntax

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// shape lists the content of a parsed file, with the places.
func shape(f *hcl.File) []string {
	var all []string
	// The callback returns no diagnostics.
	_ = hclsyntax.VisitAll(f.Body.(*hclsyntax.Body), func(node hclsyntax.Node) hcl.Diagnostics {
		switch n := node.(type) {
		case *hclsyntax.Body, hclsyntax.Attributes, hclsyntax.Blocks:
			return nil
		case *hclsyntax.Block:
			all = append(all, fmt.Sprint(n.Type, n.Labels, n.TypeRange, n.LabelRanges, n.OpenBraceRange,
				n.CloseBraceRange))
		case *hclsyntax.Attribute:
			all = append(all, fmt.Sprint(n.Name, n.SrcRange, n.NameRange, n.EqualsRange))
		case *hclsyntax.LiteralValueExpr:
			all = append(all, fmt.Sprintf("%#v %v", n.Val, n.SrcRange))
		case hclsyntax.ChildScope:
			all = append(all, fmt.Sprint(n.LocalNames))
		default:
			all = append(all, fmt.Sprintf("%T %v", n, n.Range()))
		}
		return nil
	})
	slices.Sort(all)
	return all
}

// FuzzPieces compares a file that is parsed piece by piece with HCL's result for the whole file.
func FuzzPieces(f *testing.F) {
	for _, src := range []string{
		"task \"t\" {\n  command = \"x\"\n}\n",
		"locals {\n  a = {\n    b = [1, \"${2}\"]\n}\n}\n",
		"locals {\n  a = <<X\n}\nX\n}\n",
		"/*\n}\n*/\na {\n}\n",
		"a = 1\n}\n",
		"# x\r\na \"\\u0000\" {\r\n}\r\n}\n",
		"a {\n  b = \"%{ if true }\n}\n%{ endif }\"\n}\n",
		"a { x = (\n}\n",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		fuzzing.Frugal(t, len(src), func() {
			if len(src) > 64<<10 {
				return
			}
			source := []byte(strings.Repeat("a \"b\" {\n  c = 1\n}\n", 8) + src)
			pieces, ok := parsePieces(source, "x.hcl")
			if !ok {
				return
			}
			if diags := guardNesting(source, "x.hcl"); diags != nil {
				t.Fatalf("%q: not refused, but %s", src, diags)
			}
			whole, diags := hclsyntax.ParseConfig(source, "x.hcl", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatalf("%q: no mistake in pieces, and %s", src, diags)
			}
			if got, want := shape(pieces), shape(whole); !slices.Equal(got, want) {
				t.Fatalf("%q: got\n%s\nwant\n%s", src, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			context := whole.Nav.(interface{ ContextString(int) string })
			for i := range source {
				if got, want := pieces.Nav.(navigation).ContextString(i), context.ContextString(i); got != want {
					t.Fatalf("%q, byte %d: in %q, want %q", src, i, got, want)
				}
			}
		})
	})
}

func TestLargeFilesAreParsedInPieces(t *testing.T) {
	if _, ok := parsePieces([]byte(strings.Repeat("task \"t\" {\n  command = \"echo ${1 + 1}\"\n}\n", 1000)),
		"x.hcl"); !ok {
		t.Error("a list of blocks is not parsed in pieces")
	}
	deep := "task \"t\" {\n  command = " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + "\n}\n"
	if _, ok := parsePieces([]byte(strings.Repeat("a {\n}\n", 10)+deep), "x.hcl"); ok {
		t.Error("deep nesting is not noticed in a piece")
	}
}
