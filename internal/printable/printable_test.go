package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// Parts of hostile output, and how they are shown.
var shown = map[string]string{
	"plain text":                            "plain text",
	"":                                      "",
	"meta-llama/Llama-3.1-8B 模型 é":          "meta-llama/Llama-3.1-8B 模型 é",
	"\x1b[1;31mred\x1b[0m\n next ":          "red  next",
	"\x1b[2J\x1b[H\x1b[10A\x1b[?1049hhome":  "home",
	"\x1b]0;title\x07text":                  "text",
	"\x1b]8;;http://x\x1b\\link":            "link",
	"\x1b]52;c;ZXZpbA==\x07clipboard":       "clipboard",
	"\x1bPq#0;2;0;0;0\x1b\\sixel":           "sixel",
	"\x1b_Gf=100;AAAA\x1b\\picture":         "picture",
	"\x1b]0;no end":                         "0;no end",
	"\x1b[31":                               "31",
	"\x1bc\x1b(0\x1b":                       "0",
	"\u009b31mC1 CSI":                       "\ufffd31mC1 CSI",
	"\x9b31mraw C1":                         "\ufffd31mraw C1",
	"\u009d0;title\u009c":                   "\ufffd0;title\ufffd",
	"a\rb\bc\ad\x7f\x00":                    "a b\ufffdc\ufffdd\ufffd\ufffd",
	"a\u202eb\u2066c\u200bd\ufeffe\u00adf":  "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf",
	"a\u2028b\u2029c\u0085d\u00a0e\tf\v\fg": "a b c d e f  g",
	"x ##[set-output name=a]b ##vso[task]":  "x # #[set-output name=a]b # #vso[task]",
	"###[a ##\x1b[0m[b é":                   "## #[a # #[b é",
	"\xff\xc3(\xed\xa0\x80":                 "\ufffd\ufffd(\ufffd\ufffd\ufffd",
	"\U000e0041\ue000":                      "\ufffd\ufffd", // a tag, a private character
}

func TestLine(t *testing.T) {
	for in, want := range shown {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Lines("a\x1b[2J\r\n \n  b\u202e\n\n"); got != "a\n\n  b\ufffd" {
		t.Errorf("Lines: %q", got)
	}
}

func TestSourceKeepsItsPlaces(t *testing.T) {
	for in, want := range map[string]string{
		"a = \"\x1b[2J\u202e é\"\n\tb\r\n\xff": "a = \"?[2J??? é\"\n\tb?\n?",
	} {
		if got := string(Source([]byte(in))); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestWriter(t *testing.T) {
	in := "one\ttwo\r\n10%\r20%\x1b[K\n\x1b]0;title\n\x07\u202elast\u00a0\xff"
	want := "one\ttwo\n10%\n20%\n0;title\n\ufffd\ufffdlast \ufffd"
	for _, step := range []int{1, 3, len(in)} {
		var out bytes.Buffer
		w := NewWriter(&out)
		for i := 0; i < len(in); i += step {
			if n, err := w.Write([]byte(in[i:min(i+step, len(in))])); err != nil || n == 0 {
				t.Fatal(n, err)
			}
		}
		if err := w.Close(); err != nil || out.String() != want {
			t.Errorf("in steps of %d: %q, want %q", step, out.String(), want)
		}
	}
	var out bytes.Buffer
	w := NewWriter(&out)
	fmt.Fprint(w, strings.Repeat("x", longestWait+1))
	if out.Len() == 0 {
		t.Error("a line without end is kept back for ever")
	}
}

func FuzzLine(f *testing.F) {
	for in := range shown {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fuzzing.Frugal(t, len(text), func() {
			line := Line(text)
			if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("Line(%q) = %q", text, line)
			}
			if again := Line(line); again != line {
				t.Fatalf("Line(%q) = %q, and of that %q", text, line, again)
			}
			source := Source([]byte(text))
			if len(source) != len(text) || bytes.ContainsAny(source, "\x1b\r\x00\u202e\u009b") ||
				strings.Count(text, "\n") != bytes.Count(source, []byte("\n")) {
				t.Fatalf("Source(%q) = %q", text, source)
			}
			plain, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			var read string
			escaped := JSON(plain)
			if err := json.Unmarshal(escaped, &read); err != nil || read != strings.ToValidUTF8(text, "\ufffd") &&
				utf8.ValidString(text) || bytes.ContainsFunc(escaped, func(r rune) bool {
				return !unicode.IsPrint(r)
			}) {
				t.Fatalf("JSON(%q) = %q reads as %q, %v", plain, escaped, read, err)
			}
			var out bytes.Buffer
			w := NewWriter(&out)
			half := len(text) / 2
			fmt.Fprint(w, text[:half])
			fmt.Fprint(w, text[half:])
			if err := w.Close(); err != nil || strings.ContainsFunc(out.String(), func(r rune) bool {
				return r != '\n' && r != '\t' && !unicode.IsPrint(r)
			}) {
				t.Fatalf("%q was passed on as %q, %v", text, out.String(), err)
			}
		})
	})
}

// The cost grows linearly with the length of the text, whatever its content.
func BenchmarkLine(b *testing.B) {
	for name, unit := range map[string]string{"plain": "x", "colours": "\x1b[31mx", "titles": "\x1b]",
		"broken": "\xff"} {
		for _, kib := range []int{16, 256} {
			text := strings.Repeat(unit, kib<<10/len(unit))
			b.Run(fmt.Sprintf("%s/%dKiB", name, kib), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Line(text)
				}
			})
		}
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd…", "abcö": "abc…"} {
		if got := Clip(text, 4); got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}
