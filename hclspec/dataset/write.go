package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/hclspec/internal/syntax"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// widest is the largest number of columns for all parameters in one line; else each has a line of its own.
const widest = 160

// Write writes commits as blocks, in canonical layout. Each line of comment becomes a comment above them.
func Write(w io.Writer, comment []string, commits []Commit, defaults map[string]string) error {
	var b bytes.Buffer
	for _, line := range comment {
		fmt.Fprintf(&b, "# %s\n", oneLine(line))
	}
	if len(defaults) > 0 {
		values := map[string]any{}
		for name, value := range defaults {
			values[name] = defaultValue(value)
		}
		fmt.Fprintf(&b, "locals {\n  # These are used where a commit has no value:\n")
		fmt.Fprintf(&b, "  # merge(local.defaults, { for k, v in each.commit.params : k => v if v != null })\n")
		fmt.Fprintf(&b, "  defaults = %s\n}\n\n", expression(values))
	}
	for i := range commits {
		if i > 0 {
			b.WriteString("\n")
		}
		commits[i].write(&b)
		if _, err := w.Write(hclwrite.Format(b.Bytes())); err != nil { // all at once would make gigabytes of tokens
			return err
		}
		b.Reset()
	}
	_, err := w.Write(hclwrite.Format(b.Bytes()))
	return err
}

// Excess describes the largest size of the files of a project if a text is larger; empty: it is not.
func Excess(text []byte) string { return syntax.Excess(text) }

func (c *Commit) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "commit %s {\n", expression(c.Name))
	if c.Repo != "" {
		fmt.Fprintf(b, "repo = repo.%s\n", c.Repo)
	}
	fmt.Fprintf(b, "rev = %s\n", expression(c.Rev))
	if c.Parent != "" {
		fmt.Fprintf(b, "parent = %s\n", expression(c.Parent))
	}
	if c.Title != "" {
		fmt.Fprintf(b, "title = %s\n", expression(c.Title))
	}
	if len(c.Params) > 0 {
		fmt.Fprintf(b, "params = %s\n", c.parameters())
	}
	b.WriteString("}\n")
}

// parameters returns an object on one line, or with one line for each part if that is too wide.
func (c *Commit) parameters() string {
	parts := make([]string, len(c.Params))
	for i, p := range c.Params {
		parts[i] = attribute(p.Name) + " = " + expression(p.Value)
	}
	line := "{ " + strings.Join(parts, ", ") + " }"
	if len(line) > widest {
		return "{\n" + strings.Join(parts, "\n") + "\n}"
	}
	return line
}

// shortNumber matches a number with few digits: HCL computes with all digits.
var shortNumber = lazyregexp.New(`^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$`)

// attribute returns a name in an object: unquoted if it is an identifier and no keyword.
func attribute(name string) string {
	if hclsyntax.ValidIdentifier(name) && name != "for" {
		return name
	}
	return expression(name)
}

// expression returns a value in HCL, so that nothing in it is evaluated.
func expression(v any) string {
	switch v := v.(type) {
	case string:
		return string(hclwrite.TokensForValue(cty.StringVal(clean(v))).Bytes())
	case json.Number:
		if shortNumber().MatchString(v.String()) {
			return v.String()
		}
		return expression(v.String())
	case bool:
		return fmt.Sprint(v)
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = expression(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		var parts []string
		for _, name := range sortedKeys(v) {
			parts = append(parts, attribute(clean(name))+" = "+expression(v[name]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return "null"
}

// defaultValue returns a default from the command line as a value: a number, a bool, or else text.
func defaultValue(s string) any {
	switch {
	case s == "true" || s == "false":
		return s == "true"
	case json.Valid([]byte(s)) && s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9'):
		return json.Number(s)
	}
	return s
}

// oneLine replaces line ends and control characters, so that a comment stays a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
