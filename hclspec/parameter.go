package hclspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// fill gives every commit each parameter that the files mention anywhere, as null, so that a condition on a parameter
// that only some commits have is false for the others instead of a mistake.
func (set *commitSet) fill(mentioned mentions) {
	for name, commit := range set.byName {
		attrs := commit.AsValueMap()
		attrs["params"] = mentioned.complete(attrs["params"])
		set.byName[name] = cty.ObjectVal(attrs)
	}
}

// mentions holds the parameters that the files use, with the places of use.
type mentions map[string][]mention

type mention struct {
	of string // word before .params: commit or variant; empty: another one
	at hcl.Range
}

// scan finds .params.NAME in a source of either syntax.
func (m *mentions) scan(src []byte, filename string) {
	if *m == nil {
		*m = mentions{}
	}
	if !bytes.Contains(src, []byte("params")) {
		return
	}
	for _, found := range paramUse().FindAllSubmatchIndex(src, -1) {
		from, to := found[4], found[5]
		if from < 0 {
			from, to = found[6], found[7]
		}
		of, name := "", string(src[from:to])
		if found[2] >= 0 {
			of = string(src[found[2]:found[3]])
		}
		// Lines are counted later, for warnings only; most names need none.
		(*m)[name] = append((*m)[name], mention{of, hcl.Range{Filename: filename, Start: hcl.Pos{Byte: from},
			End: hcl.Pos{Byte: to}}})
	}
}

var paramUse = lazyregexp.New(`(?:\b(commit|variant)\s*\.\s*)?\bparams\s*` +
	`(?:\.\s*([\pL_][\pL\pN_-]*)|\[\s*\\?"([^"\\]+)\\?"\s*\])`)

func (m mentions) complete(params cty.Value) cty.Value {
	if !params.IsKnown() {
		return params
	}
	attrs := params.AsValueMap()
	if attrs == nil {
		attrs = map[string]cty.Value{}
	}
	for name := range m {
		if _, ok := attrs[name]; !ok {
			attrs[name] = cty.NullVal(cty.DynamicPseudoType)
		}
	}
	return cty.ObjectVal(attrs)
}

// warn warns of parameters that no commit has, and whose names are nearly those of parameters that some have.
func (m mentions) warn(l *loader, commits []Commit) {
	have := map[string]bool{}
	for _, c := range commits {
		var params map[string]json.RawMessage
		// Params that are no object were reported.
		_ = json.Unmarshal(c.Params, &params)
		for name := range params {
			have[name] = true
		}
	}
	known := slices.Collect(maps.Keys(have))
	for name, uses := range m {
		hint := diag.Suggest(name, known)
		if have[name] || hint == "" {
			continue
		}
		for _, use := range uses {
			if use.of == "commit" && !inComment(l.sources.get(use.at.Filename).Bytes, use.at.Filename,
				use.at.Start.Byte) {
				at := l.placeOf(use.at)
				l.scope.Diags.Warn("", at, "Parameter of no commit",
					fmt.Sprintf("No commit has the parameter %q, so it is always null.%s", name, hint))
				break
			}
		}
	}
}

// placeOf completes a range that has only byte offsets.
func (l *loader) placeOf(r hcl.Range) hcl.Range {
	src := l.sources.get(r.Filename).Bytes
	r.Start = position(src, r.Start.Byte)
	r.End = position(src, r.End.Byte)
	return r
}

func position(src []byte, offset int) hcl.Pos {
	before := string(src[:offset])
	line := strings.Count(before, "\n")
	return hcl.Pos{Line: line + 1, Column: offset - (strings.LastIndexByte(before, '\n') + 1) + 1, Byte: offset}
}

// inComment reports whether a byte of a file in native syntax lies in a comment.
func inComment(src []byte, filename string, offset int) bool {
	if strings.HasSuffix(filename, ".json") {
		return false
	}
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos)
	for _, t := range tokens {
		if t.Range.Start.Byte <= offset && offset < t.Range.End.Byte {
			return t.Type == hclsyntax.TokenComment
		}
	}
	return false
}
