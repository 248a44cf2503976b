// Package funcs is the table of functions that expressions may call: those of HCL and cty under Terraform's names, file
// functions confined to one project, and pep440_match.
//
// Every function is pure and bounded: no clock, no randomness, no file outside the project, no result without limit.
package funcs

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"maps"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// Mark encloses a reference inside a string. No text of a user can contain it: it is refused in all input.
const Mark = "\x00"

// Table returns every function by its name. The file functions read below dir.
func Table(dir *project.Dir) map[string]function.Function {
	table := maps.Clone(common())
	for name, f := range files(dir) {
		table[name] = callable(name, f, true)
	}
	return table
}

// Add adds a function to the table. It may take references, and must not read their text.
func Add(table map[string]function.Function, name string, f function.Function) {
	table[name] = callable(name, f, false)
}

// Parameters returns the names of the parameters of every function, by its name. The last one ends in "..." if it
// takes any number of arguments.
func Parameters(table map[string]function.Function) map[string][]string {
	all := map[string][]string{}
	for name, f := range table {
		names := []string{}
		for _, p := range f.Params() {
			names = append(names, p.Name)
		}
		if p := f.VarParam(); p != nil {
			names = append(names, p.Name+"...")
		}
		all[name] = names
	}
	return all
}

// Pure reports whether an expression calls no function that reads files or histories, which only one goroutine may do.
func Pure(expr hcl.Expression) bool {
	native, pure := expr.(hclsyntax.Expression)
	if pure {
		// The callback returns no diagnostics, so neither does VisitAll.
		_ = hclsyntax.VisitAll(native, func(node hclsyntax.Node) hcl.Diagnostics {
			if call, ok := node.(*hclsyntax.FunctionCallExpr); ok {
				_, common := common()[call.Name]
				pure = pure && common
			}
			return nil
		})
	}
	return pure
}

// common returns the functions that are the same for every project.
var common = sync.OnceValue(func() map[string]function.Function {
	table := map[string]function.Function{
		// These evaluate expressions, or return one part of their argument.
		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc, "lookup": lookup, "length": length, "one": one,
	}
	for name, f := range structural() {
		table[name] = callable(name, f, false)
	}
	for name, f := range plain() {
		table[name] = callable(name, f, true)
	}
	return table
})

// structural returns the functions through which references may pass: they move values and do not read text.
func structural() map[string]function.Function {
	return map[string]function.Function{
		"alltrue": allTrue, "anytrue": anyTrue, "chunklist": stdlib.ChunklistFunc, "coalesce": coalesce,
		"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
		"contains": stdlib.ContainsFunc, "distinct": distinct, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc,
		"format":  bounded(stdlib.FormatFunc), "formatlist": bounded(stdlib.FormatListFunc), "index": index,
		"join": stdlib.JoinFunc,
		"keys": stdlib.KeysFunc, "matchkeys": matchKeys, "merge": stdlib.MergeFunc,
		"reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
		"setproduct":  stdlib.SetProductFunc,
		"setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc,
		"sort":   stdlib.SortFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)), "tonumber": stdlib.MakeToFunc(cty.Number),
		"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "tostring": stdlib.MakeToFunc(cty.String),
		"transpose": transpose, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,
	}
}

// plain returns the functions that compute with numbers and texts, and so accept no references.
func plain() map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
		"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
		"range": sequence, "signum": stdlib.SignumFunc, "sum": sum,

		"basename": ofText(path.Base), "chomp": stdlib.ChompFunc, "dirname": ofText(path.Dir), "endswith": endsWith,
		"formatdate": stdlib.FormatDateFunc, "indent": indent, "lower": stdlib.LowerFunc, "pep440_match": pep440Match,
		"pep440_version": ofString("text", pep440Version), "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc,
		"regexreplace": stdlib.RegexReplaceFunc, "replace": replace, "split": stdlib.SplitFunc,
		"startswith": startsWith, "strcontains": strContains, "strrev": stdlib.ReverseFunc,
		"substr": stdlib.SubstrFunc, "timeadd": stdlib.TimeAddFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
		"upper": stdlib.UpperFunc,

		"base64decode": ofString("text", func(s string) (string, error) {
			raw, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				return "", err
			}
			return text(raw)
		}),
		"base64encode": ofText(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		"csvdecode":    stdlib.CSVDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "yamlencode": yaml.YAMLEncodeFunc,
		"jsondecode": decoder(stdlib.JSONDecodeFunc, checkJSON),
		"yamldecode": decoder(yaml.YAMLDecodeFunc, checkYAML), "urlencode": ofText(url.QueryEscape),
		"md5": ofText(hashed(md5.New)), "sha1": ofText(hashed(sha1.New)), "sha256": ofText(hashed(sha256.New)),
		"sha512": ofText(hashed(sha512.New)),
	}
}

// Contains reports whether a reference stands anywhere in v.
func Contains(v cty.Value) bool {
	found := false
	// The callback returns no error, so neither does Walk.
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		if v.IsKnown() && !v.IsNull() && v.Type() == cty.String && strings.Contains(v.AsString(), Mark) {
			found = true
		}
		return !found, nil
	})
	return found
}

// decoder checks the text before it is decoded, and the decoded value for NUL characters.
func decoder(f function.Function, check func(string) error) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if args[0].IsKnown() && !args[0].IsNull() {
				if err := check(args[0].AsString()); err != nil {
					return cty.DynamicPseudoType, function.NewArgError(0, err)
				}
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err == nil && Contains(v) {
				return cty.DynamicVal, function.NewArgErrorf(0, "the text holds a NUL character")
			}
			return v, err
		},
	})
}

// bounded refuses widths and precisions that only a mistake, or an attack, can have.
func bounded(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if args[0].IsKnown() && !args[0].IsNull() && args[0].Type() == cty.String &&
				hugeWidth().MatchString(args[0].AsString()) {
				return cty.DynamicPseudoType, function.NewArgErrorf(0,
					"a width or precision above 9999 is not supported")
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}
