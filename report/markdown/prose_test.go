package markdown

import (
	"bytes"
	"html"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/printable"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// Whatever stands in a text, its Markdown reads as that text: no markup, no link, no further cell.
func checkMarkdown(t *testing.T, s string) {
	t.Helper()
	renderer := goldmark.New(goldmark.WithExtensions(extension.GFM))
	read := func(source, before, after string) string {
		t.Helper()
		var out bytes.Buffer
		if err := renderer.Convert([]byte(source), &out); err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(out.String(), before)
		inner, _, ends := strings.Cut(rest, after)
		if !found || !ends {
			t.Fatalf("%q: no %s in\n%s", source, before, out.String())
		}
		inner = strings.TrimSuffix(strings.TrimPrefix(inner, "<code>"), "</code>")
		if strings.Contains(inner, "<") {
			t.Fatalf("%q became markup: %s", source, inner)
		}
		return html.UnescapeString(inner)
	}
	want := printable.Line(s)
	if want == "" {
		return
	}
	for name, got := range map[string]string{
		"sentence": read(prose(s)+"\n", "<p>", "</p>"),
		"item":     read("1. "+prose(s)+"\n", "<li>", "</li>"),
		"cell": read("| a | b |\n| --- | --- |\n| "+prose(s)+" | end |\n", "<tbody>\n<tr>\n<td>",
			"</td>\n<td>end</td>"),
		"code": read("x "+code(s)+"\n", "<p>x ", "</p>"),
		"code in cell": read("| a | b |\n| --- | --- |\n| "+codeCell(s)+" | end |\n", "<tbody>\n<tr>\n<td>",
			"</td>\n<td>end</td>"),
	} {
		if got != want {
			t.Errorf("%s: %q reads as %q, want %q", name, s, got, want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range fuzzing.Hostile() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fuzzing.Frugal(t, len(s), func() { checkMarkdown(t, s) })
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1;31mred\x1b[0m\n next ": "red  next",
		"\x1b]0;title\x07text":         "text",
		"\x1b]8;;http://x\x1b\\link":   "link",
		"a\u202eb\x00":                 "a\ufffdb\ufffd",
		"meta-llama/Llama-3.1-8B 模型":   "meta-llama/Llama-3.1-8B 模型",
	} {
		if got := printable.Line(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	long := strings.Repeat("x", 5000)
	if got := shorten(long); len(got) > 500 || !strings.Contains(got, "4600 more characters") {
		t.Errorf("shorten: %q", got)
	}
	model := "org/" + long
	if got := codeCell(model); !strings.Contains(got, model) {
		t.Error("a name was cut")
	}
}
