package funcs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"unicode/utf8"

	pep440 "github.com/aquasecurity/go-pep440-version"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// maxNesting bounds the nesting of decoded documents; cty walks them by recursion.
const maxNesting = 1000

// maxAliases bounds the aliases in a YAML document, each of which may make it larger than its text.
const maxAliases = 16

var (
	hugeWidth = lazyregexp.New(`%[^a-zA-Z%]*[0-9]{5,}`)
	yamlAlias = lazyregexp.New(`(?m)(?:^|[\s\[{,:-])\*[^\s,\]}]+`)
	yamlDash  = lazyregexp.New(`(?m)^[ ]*(?:- *){50,}`)
)

// ofText returns a function of one text that has a result for every text.
func ofText(f func(string) string) function.Function {
	return ofString("text", func(s string) (string, error) { return f(s), nil })
}

// ofString returns a function of one string.
func ofString(parameter string, f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: parameter, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			out, err := f(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(out), nil
		},
	})
}

// comparison returns a function that compares two strings.
func comparison(f func(text, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var (
	startsWith  = comparison(strings.HasPrefix)
	endsWith    = comparison(strings.HasSuffix)
	strContains = comparison(strings.Contains)
)

// hashed returns a function that returns the hexadecimal hash of a text.
func hashed(algorithm func() hash.Hash) func(string) string {
	return func(s string) string {
		h := algorithm()
		h.Write([]byte(s))
		return hex.EncodeToString(h.Sum(nil))
	}
}

// text converts bytes from outside into a string of the language.
func text(raw []byte) (string, error) {
	if !utf8.Valid(raw) {
		return "", errors.New("the content is not UTF-8 text")
	}
	if bytes.Contains(raw, []byte(Mark)) {
		return "", errors.New("the content holds a NUL byte, so it is no text")
	}
	return string(raw), nil
}

var indent = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "spaces", Type: cty.Number}, {Name: "text", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].GreaterThan(cty.NumberIntVal(9999)).True() || args[0].LessThan(cty.Zero).True() {
			return cty.NilVal, function.NewArgErrorf(0, "the indentation must lie between 0 and 9999")
		}
		return stdlib.Indent(args[0], args[1])
	},
})

// replace treats a pattern between slashes as a regular expression, as Terraform's does.
var replace = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "old", Type: cty.String},
		{Name: "new", Type: cty.String}},
	Type: function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if old := args[1].AsString(); len(old) > 2 && strings.HasPrefix(old, "/") && strings.HasSuffix(old, "/") {
			return stdlib.RegexReplace(args[0], cty.StringVal(old[1:len(old)-1]), args[2])
		}
		return stdlib.Replace(args[0], args[1], args[2])
	},
})

// pep440Match returns false for a version that is null, so that a condition is no mistake for a commit without a
// version.
var pep440Match = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "version", Type: cty.String, AllowNull: true},
		{Name: "specifiers", Type: cty.String}},
	Type: function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		// A commit between two releases has a development version; to exclude those would make every range empty.
		specifiers, err := pep440.NewSpecifiers(args[1].AsString(), pep440.WithPreRelease(true))
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(1, "%q is not a PEP 440 specifier such as \">=0.6.3,<0.9\"",
				args[1].AsString())
		}
		if args[0].IsNull() {
			return cty.False, nil
		}
		version, err := pep440.Parse(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "%q is not a PEP 440 version such as \"0.8.2.dev3\"",
				args[0].AsString())
		}
		return cty.BoolVal(specifiers.Check(version) && !beforeItself(version, args[1].AsString())), nil
	},
})

// beforeItself reports whether a version is a pre-release of a version that "<" excludes: "<0.6.5" does not match
// 0.6.5rc1, although 0.6.5rc1 is older than 0.6.5 (PEP 440, "Exclusive ordered comparison"). The library only compares
// the order of versions.
func beforeItself(v pep440.Version, specifiers string) bool {
	if !v.IsPreRelease() {
		return false
	}
	for one := range strings.SplitSeq(specifiers, ",") {
		text, ok := strings.CutPrefix(strings.TrimSpace(one), "<")
		limit, err := pep440.Parse(strings.TrimSpace(text))
		if ok && err == nil && !limit.IsPreRelease() && limit.BaseVersion() == v.BaseVersion() {
			return true
		}
	}
	return false
}

func checkJSON(s string) error {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		}
		if depth > maxNesting {
			return fmt.Errorf("the document is nested deeper than %d levels", maxNesting)
		}
	}
	return nil
}

// checkYAML refuses documents that would make the decoder recurse, or the document expand, without bound.
func checkYAML(s string) error {
	if deepest(s) > maxNesting || strings.Contains(s, strings.Repeat(" ", 2*maxNesting)) {
		return fmt.Errorf("the document is nested deeper than %d levels", maxNesting)
	}
	if yamlDash().MatchString(s) {
		return errors.New("the document nests lists deeper than 50 levels in one line")
	}
	if n := len(yamlAlias().FindAllStringIndex(s, maxAliases+1)); n > maxAliases {
		return fmt.Errorf("the document has more than %d aliases", maxAliases)
	}
	return nil
}

func deepest(s string) int {
	depth, most := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		most = max(most, depth)
	}
	return most
}
