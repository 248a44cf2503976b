package cache_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestDescriptionIsReadable(t *testing.T) {
	d := cache.Describe("wheel")
	d.Add("command", "pip wheel --wheel-dir $OUT .")
	d.Add("env", "MAX_JOBS", "32")
	d.Add("nothing")
	d.Add("odd label", "x\n\"y\"")
	want := `benchgraph key 1
kind "wheel"
command "pip wheel --wheel-dir $OUT ."
env "MAX_JOBS" "32"
nothing
"odd label" "x\n\"y\""
`
	if d.Text() != want {
		t.Errorf("Text:\n%s\nwant:\n%s", d.Text(), want)
	}
}

func TestKeyAsText(t *testing.T) {
	key := cache.Describe("wheel").Key()
	text, err := json.Marshal(key)
	if err != nil || string(text) != `"`+key.String()+`"` {
		t.Errorf("Marshal = %s, %v", text, err)
	}
	var back cache.Key
	if err := json.Unmarshal(text, &back); err != nil || back != key || back.IsZero() {
		t.Errorf("Unmarshal = %s, %v", back, err)
	}
	for _, bad := range []string{"", "abc", key.String() + "00", strings.Repeat("g", 64)} {
		if _, err := cache.ParseKey(bad); err == nil {
			t.Errorf("ParseKey(%q) gave no error", bad)
		}
	}
	if !strings.HasPrefix(key.String(), key.Short()) || len(key.Short()) != 12 {
		t.Errorf("Short = %s", key.Short())
	}
}

// drawLines draws lines whose labels and values are any bytes.
func drawLines(t *rapid.T, name string) []cache.Line {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a" \\\n]{0,3}`),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string {
			return string(b)
		}))
	lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cache.Line {
		return cache.Line{Label: text.Draw(t, "label"), Values: rapid.SliceOfN(text, 0, 4).Draw(t, "values")}
	}), 0, 6)
	return lines.Draw(t, name)
}

func describe(lines []cache.Line) *cache.Description {
	d := cache.Describe("kind")
	for _, l := range lines {
		d.Add(l.Label, l.Values...)
	}
	return d
}

func equalLines(a, b []cache.Line) bool {
	return slices.EqualFunc(a, b, func(a, b cache.Line) bool {
		return a.Label == b.Label && slices.Equal(a.Values, b.Values)
	})
}

func TestParseTextReadsBackAddedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawLines(t, "lines")
		parsed, err := cache.ParseText(describe(lines).Text())
		if err != nil {
			t.Fatal(err)
		}
		if !equalLines(parsed[1:], lines) {
			t.Fatalf("read back %q, added %q", parsed[1:], lines)
		}
	})
}

func TestDistinctLinesHaveDistinctKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawLines(t, "a"), drawLines(t, "b")
		da, db := describe(a), describe(b)
		if same := equalLines(a, b); same != (da.Text() == db.Text()) || same != (da.Key() == db.Key()) {
			t.Fatalf("%q and %q: texts %q and %q", a, b, da.Text(), db.Text())
		}
	})
}

func TestParseTextRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"another version":    "benchgraph key 0\nkind \"a\"\n",
		"cut short":          cache.KeyVersion + "\nkind \"a\"",
		"no quotes":          cache.KeyVersion + "\nkind a\n",
		"single quotes":      cache.KeyVersion + "\nkind 'a'\n",
		"back quotes":        cache.KeyVersion + "\nkind `a`\n",
		"another spelling":   cache.KeyVersion + "\nkind \"\\x61\"\n",
		"two spaces":         cache.KeyVersion + "\nkind  \"a\"\n",
		"no space":           cache.KeyVersion + "\nkind \"a\"\"b\"\n",
		"trailing space":     cache.KeyVersion + "\nkind \"a\" \n",
		"empty line":         cache.KeyVersion + "\n\n",
		"label quoted idly":  cache.KeyVersion + "\n\"kind\" \"a\"\n",
		"control in a label": cache.KeyVersion + "\nki\x01nd \"a\"\n",
	} {
		if lines, err := cache.ParseText(text); err == nil {
			t.Errorf("%s: %q, want an error", name, lines)
		}
	}
}

func FuzzParseText(f *testing.F) {
	f.Add(describe([]cache.Line{{Label: "env", Values: []string{"A", "1"}}, {Label: "odd label"},
		{Label: "", Values: []string{"\xff\u2028"}}}).Text())
	f.Add(cache.KeyVersion + "\nkind \"a\"\n\"\" 'b'\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var lines []cache.Line
		var err error
		fuzzing.Frugal(t, len(text), func() { lines, err = cache.ParseText(text) })
		if err != nil {
			return
		}
		if len(lines) == 0 {
			if text != cache.KeyVersion+"\n" {
				t.Fatalf("no lines in %q", text)
			}
			return
		}
		// Describe writes the first line itself, so it is compared as text.
		d := cache.Describe("x")
		prefix := d.Text()
		for _, l := range lines {
			d.Add(l.Label, l.Values...)
		}
		if again := cache.KeyVersion + "\n" + strings.TrimPrefix(d.Text(), prefix); again != text {
			t.Fatalf("%q was read, and written as %q", text, again)
		}
	})
}

// After Reset, a description has nothing of the one before, and earlier texts stay as they are.
func TestDescriptionReset(t *testing.T) {
	d := cache.Describe("long")
	d.Add("label", strings.Repeat("x", 10_000))
	before, want := d.Text(), cache.Describe("short")
	d.Reset("short")
	d.Add("label", "value")
	want.Add("label", "value")
	if d.Text() != want.Text() || d.Key() != want.Key() {
		t.Errorf("%q, want %q", d.Text(), want.Text())
	}
	if !strings.HasSuffix(before, "xx\"\n") {
		t.Errorf("the text taken before is now %.80q", before)
	}
}
