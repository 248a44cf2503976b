package mask

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// masked is the plain meaning of a Writer: all occurrences are found in the whole text, those that overlap are one.
func masked(text string, secrets []string) string {
	var out strings.Builder
	covered := 0
	for i := 0; i < len(text); i++ {
		longest := 0
		for _, s := range secrets {
			if s = strings.TrimSpace(s); strings.HasPrefix(text[i:], s) {
				longest = max(longest, len(s))
			}
		}
		if longest > 0 {
			if i >= covered {
				out.WriteString(maskText)
			}
			covered = max(covered, i+longest)
		}
		if i >= covered {
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// writeSplit writes text to a Writer in pieces that end at the cuts.
func writeSplit(t rapid.TB, text string, secrets []string, cuts []int) string {
	var out bytes.Buffer
	m := New(&out, secrets)
	for _, cut := range append(cuts, len(text)) {
		cut = min(cut, len(text))
		n, err := m.Write([]byte(text[:cut]))
		if n != cut || err != nil {
			t.Fatalf("Write = %d, %v; want %d, nil", n, err, cut)
		}
		text = text[cut:]
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWriter(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		secrets          []string
	}{
		{"no secret", "token abc", "token abc", nil},
		{"one", "token abc!", "token ***!", []string{"abc"}},
		{"empty ones are ignored", "token abc!", "token ***!", []string{"", " \n", "abc"}},
		{"the longest wins", "abcdef", "***", []string{"abc", "abcdef"}},
		{"a longer one that does not come", "abcdeX", "***deX", []string{"abc", "abcdef"}},
		{"overlapping", "xabcdey", "x***y", []string{"abc", "cde"}},
		{"overlapping itself", "xababay", "x***y", []string{"aba"}},
		{"side by side", "abab", "******", []string{"ab"}},
		{"held back at the end", "token ab", "token ab", []string{"abc"}},
		{"space around it", "token abc\n", "token ***\n", []string{"abc\n"}},
		{"not UTF-8", "\xff\xfe\x00abc\xff", "\xff\xfe\x00***\xff", []string{"abc"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := writeSplit(t, test.text, test.secrets, nil); got != test.want {
				t.Errorf("whole: %q, want %q", got, test.want)
			}
			ones := make([]int, len(test.text))
			for i := range ones {
				ones[i] = 1
			}
			if got := writeSplit(t, test.text, test.secrets, ones); got != test.want {
				t.Errorf("byte by byte: %q, want %q", got, test.want)
			}
		})
	}
}

func TestWriterIsTheSameHoweverTheTextIsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,6}`), 1, 4).Draw(t, "secrets")
		text := rapid.StringMatching(`[abc]{0,60}`).Draw(t, "text")
		cuts := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "cuts")
		if got, want := writeSplit(t, text, secrets, cuts), masked(text, secrets); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func TestWriterHoldsBackNoMoreThanItMust(t *testing.T) {
	var out bytes.Buffer
	m := New(&out, []string{"secret"})
	if _, err := m.Write([]byte("ready\nsec")); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "ready\n" {
		t.Errorf("passed on %q, want the line before the beginning of the secret", got)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("token abc and more", "abc", "more", uint8(3))
	f.Add("aaaaaa", "aa", "aaa", uint8(1))
	f.Add("\xff\x00\xff", "\x00", "", uint8(2))
	f.Fuzz(func(t *testing.T, text, one, two string, step uint8) {
		fuzzing.Frugal(t, len(text)+len(one)+len(two), func() {
			var secrets []string
			for _, s := range []string{one, two} {
				if strings.TrimSpace(s) != "" {
					secrets = append(secrets, s)
				}
			}
			var cuts []int
			for range len(text) / (int(step) + 1) {
				cuts = append(cuts, int(step)+1)
			}
			if got, want := writeSplit(t, text, secrets, cuts), masked(text, secrets); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		})
	})
}

func BenchmarkWriter(b *testing.B) {
	text := make([]byte, 32<<10)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	m := New(io.Discard, []string{"hf_0123456789abcdef0123456789abcdef", "a-very-secret-one", "zabc"})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := m.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
