package git

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// TestTheHistoryIsAsked shows what commits change, what their trees have and what tags say of them, of a repository on
// this machine and of one behind a URL that sends no content until it is asked for.
func TestTheHistoryIsAsked(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("first", map[string]string{"setup.py": "version 1\n", "src/a b.c": "a\n", "l:link": "setup.py"})
	o.git("tag", "v1.0")
	o.git("tag", "latest")
	second := o.commit("second", map[string]string{"setup.py": "version 2\n", "src/deep/new.c": "new\n"})
	o.git("mv", "src/a b.c", "src/moved.c")
	third := o.commit("third", nil)
	o.git("tag", "v2.0rc1", second)
	for _, location := range []string{o.dir, "file://" + o.dir} {
		m, x := open(t, location)
		ctx := t.Context()
		changed, err := m.Changed(ctx, []Step{{To: first}, {To: second}, {To: third}, {From: first, To: third},
			{From: third, To: third}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"link setup.py src/a b.c", "setup.py src/deep/new.c", "src/a b.c src/moved.c",
			"setup.py src/a b.c src/deep/new.c src/moved.c", ""} {
			if got := strings.Join(changed[i], " "); got != want {
				t.Errorf("%s: step %d changes %q, want %q", location, i, got, want)
			}
		}
		places := []Place{{first, "setup.py"}, {second, "setup.py"}, {first, "src"}, {first, "src/deep/new.c"},
			{second, "src/deep/new.c"}, {first, "link"}, {first, "setup.py/x"}, {first, "src/a b.c"}, {first, "none/x"}}
		found, err := m.Find(ctx, places)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, true, true, false, true, true, false, true, false} {
			if found[i].Exists() != want {
				t.Errorf("%s: %v exists: %v, want %v", location, places[i], found[i].Exists(), want)
			}
		}
		texts := make([]string, len(found))
		err = m.Contents(ctx, found, 4, func(i int, text []byte, err error) {
			texts[i] = string(text)
			if err != nil {
				texts[i] = err.Error()
			}
		})
		if want := []string{"versi", "versi", "it is no regular file", "there is no such file", "new\n",
			"it is no regular file", "there is no such file", "a\n", "there is no such file"}; err != nil ||
			!slices.Equal(texts, want) {
			t.Errorf("%s: contents %q, %v", location, texts, err)
		}
		said, err := m.Describe(ctx, []string{first, second, third})
		if err != nil || said[first] != o.git("describe", "--tags", "--long", "--match", "v*", first) ||
			said[third] != o.git("describe", "--tags", "--long", third) ||
			!strings.HasPrefix(said[third], "v2.0rc1-1-g") {
			t.Errorf("%s: described as %v, %v", location, said, err)
		}
		if n := x.count("describe") + x.count("diff-tree"); n != 2 {
			t.Errorf("%s: %d processes answered two kinds of questions", location, n)
		}
		_, err = m.Changed(ctx, []Step{{To: strings.Repeat("0", 40)}})
		if _, ok := errors.AsType[*UnknownRev](err); !ok {
			t.Errorf("%s: a commit that is not there: %v", location, err)
		}
	}
	bare := newOrigin(t)
	only := bare.commit("only", nil)
	m, _ := open(t, bare.dir)
	if said, err := m.Describe(t.Context(), []string{only}); err != nil || len(said) != 0 {
		t.Errorf("without tags: %v, %v", said, err)
	}
}

// FuzzParseTree reads trees of any bytes: what it returns is written in them, in their order.
func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x0012345678901234567890"))
	f.Add([]byte("40000 dir\x0012345678901234567890100644 x\x00123"))
	f.Fuzz(func(t *testing.T, tree []byte) {
		var entries []Entry
		var err error
		fuzzing.Frugal(t, len(tree), func() { entries, err = parseTree(tree) })
		var again []byte
		for _, e := range entries {
			id, _ := hex.DecodeString(e.ID)
			again = append(append(again, e.Mode+" "+e.Name+"\x00"...), id...)
		}
		if err == nil && !bytes.Equal(again, tree) {
			t.Errorf("%q is read as %+v", tree, entries)
		}
	})
}
