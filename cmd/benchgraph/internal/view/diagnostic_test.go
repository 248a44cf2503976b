package view

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// A short file is shown as HCL itself shows it, whatever a diagnostic is about. (But HCL
// leaves out empty lines, and shows one line more when the place reaches to the end of its line. Of a character that a
// place without a length precedes, HCL marks the first byte alone, which is no text.)
func TestDiagnosticsLookAsHCLsOwn(t *testing.T) {
	src := []byte("task \"t\" {\n  command = \"ä b\" # x\n\tneeds = [task.none,\n    1]\n}\nlocals {}")
	file, diags := hclsyntax.ParseConfig(src, "a.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	places := positions(src)
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string) *hcl.Range {
			one, two := rapid.IntRange(0, len(places)-1).Draw(t, name),
				rapid.IntRange(0, len(places)-1).Draw(t, name+"'s other end")
			r := &hcl.Range{Filename: "a.hcl", Start: places[min(one, two)], End: places[max(one, two)]}
			if r.End.Column == 1 {
				r.End = r.Start
			}
			return r
		}
		d := &hcl.Diagnostic{
			Severity: rapid.SampledFrom([]hcl.DiagnosticSeverity{hcl.DiagError, hcl.DiagWarning}).Draw(t, "severity"),
			Summary:  "It is wrong", Detail: rapid.SampledFrom([]string{"", "Some words that are long enough.",
				"Two\nlines."}).Draw(t, "detail"),
		}
		if rapid.Bool().Draw(t, "somewhere") {
			d.Subject = span("subject")
		}
		if d.Subject != nil && rapid.Bool().Draw(t, "with context") {
			d.Context = span("context")
			if d.Context.Start.Byte > d.Subject.Start.Byte || d.Context.End.Byte < d.Subject.End.Byte {
				d.Context = nil
			}
		}
		files := map[string]*hcl.File{"a.hcl": file}
		if rapid.Bool().Draw(t, "lost") {
			delete(files, "a.hcl")
		}
		width, color := rapid.SampledFrom([]int{0, 12, 80}).Draw(t, "width"), rapid.Bool().Draw(t, "color")
		byHCL := *d
		if s := d.Subject; s != nil && s.Empty() && src[s.Start.Byte] >= utf8.RuneSelf {
			wide := *s
			wide.End.Byte, wide.End.Column = s.Start.Byte+len("ä"), s.Start.Column+1
			byHCL.Subject = &wide
		}
		var want strings.Builder
		if err := hcl.NewDiagnosticTextWriter(&want, files, uint(width), color).WriteDiagnostic(&byHCL); err != nil {
			t.Fatal(err)
		}
		if got := (Style{Color: color}).Diagnostic(d, files["a.hcl"], width); got != want.String() {
			t.Fatalf("got\n%q\nwant\n%q", got, want.String())
		}
	})
}

// positions are all places in src at which a character of a line begins.
func positions(src []byte) []hcl.Pos {
	pos := hcl.InitialPos
	all := []hcl.Pos{pos}
	for pos.Byte < len(src) {
		r, n := utf8.DecodeRune(src[pos.Byte:])
		pos.Byte, pos.Column = pos.Byte+n, pos.Column+1
		if r == '\n' {
			pos.Line, pos.Column = pos.Line+1, 1
		}
		if pos.Byte < len(src) && src[pos.Byte] != '\n' {
			all = append(all, pos)
		}
	}
	return all
}

// The text of a diagnostic is short and printable, whatever the file contains and wherever the diagnostic points.
func FuzzDiagnostic(f *testing.F) {
	f.Add([]byte("a = [\n  b,\n]\n"), "Bad", "It is bad.", 5, 7, 0, 100)
	f.Add([]byte(strings.Repeat("é", 600)+"\x1b[2J\xff"), "\x1b", "\xff\u202e", 1201, 1203, -1, 1<<62)
	f.Fuzz(func(t *testing.T, src []byte, summary, detail string, start, end, from, to int) {
		fuzzing.Frugal(t, len(src)+len(summary)+len(detail), func() {
			if len(summary)+len(detail) > 4<<10 {
				return
			}
			span := func(start, end int) *hcl.Range {
				return &hcl.Range{Filename: "x\x1b", Start: hcl.Pos{Line: 3, Byte: start}, End: hcl.Pos{Byte: end}}
			}
			d := &hcl.Diagnostic{Summary: summary, Detail: detail, Subject: span(start, end), Context: span(from, to)}
			shown := Style{}.Diagnostic(d, &hcl.File{Bytes: src}, 40)
			for _, r := range shown {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) {
					t.Fatalf("%q is shown", shown)
				}
			}
			if most := 30<<10 + 8*(len(summary)+len(detail)); len(shown) > most {
				t.Fatalf("%d bytes are shown, which is more than %d", len(shown), most)
			}
			if !utf8.ValidString(shown) {
				t.Fatalf("%q is no text", shown)
			}
		})
	})
}

// However large a file is, a mistake at its end is shown as soon as one at its beginning.
func BenchmarkDiagnostic(b *testing.B) {
	for _, blocks := range []int{10, 1_000, 100_000} {
		src := []byte(strings.Repeat("task \"t\" {\n  command = \"true\"\n}\n", blocks))
		at := hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 3 * blocks, Byte: len(src) - 2},
			End: hcl.Pos{Line: 3 * blocks, Byte: len(src) - 1}}
		d := &hcl.Diagnostic{Summary: "It is wrong", Subject: &at}
		b.Run(fmt.Sprint(blocks), func(b *testing.B) {
			for b.Loop() {
				Style{}.Diagnostic(d, &hcl.File{Bytes: src}, 0)
			}
		})
	}
}
