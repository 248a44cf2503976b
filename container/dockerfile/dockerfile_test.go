package dockerfile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestImages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		args map[string]string
		want []string
		says string // of an error
	}{
		"plain":    {text: "FROM a:1\n", want: []string{"a:1"}},
		"stages":   {text: "from a as x\nFROM x AS y\nFROM X\nFROM scratch\nFROM a\n", want: []string{"a"}},
		"platform": {text: "FROM --platform=$BUILDPLATFORM a@sha256:1 AS x", want: []string{"a@sha256:1"}},
		"default":  {text: "ARG R=r V=1\nARG T=${R}/t\nFROM $T:${V}", want: []string{"r/t:1"}},
		"given":    {text: "ARG T=a\nFROM $T", args: map[string]string{"T": "b"}, want: []string{"b"}},
		"not given": {text: "FROM ${T}", args: map[string]string{"T": "b"},
			says: `line 1 of the Dockerfile: "${T}": argument T has no value`},
		"fallback": {text: "ARG E=\nFROM ${T:-a}${E:-b}${E-c}${E:+d}${T+e}", want: []string{"ab"}},
		"later":    {text: "FROM a\nARG T=x\nFROM $T", says: "argument T has no value"},
		"quotes":   {text: "ARG T=\"a:1\"\nFROM \"$T\"", want: []string{"a:1"}},
		"nested":   {text: "FROM ${T:-${U}}", says: "it cannot be told"},
		"escaped":  {text: `FROM \$T`, says: "it cannot be told"},
		"none":     {text: "RUN true\n", says: "has no FROM"},
		"much":     {text: "FROM a b\n", says: "want FROM IMAGE"},
		"from": {text: "FROM a AS x\nCOPY --chown=1 --from=b:1 /x /y\nCOPY --from=x /z /z\nCOPY --from=0 / " +
			"/\nADD --from=X a b", want: []string{"a", "b:1"}},
		"from what": {text: "FROM a\nCOPY --from=$X /x /y",
			says: "line 2 of the Dockerfile: --from=$X: it cannot be told"},
		"mount": {text: "FROM a AS x\nRUN --network=none --mount=type=bind,source=/s,from=b,target=/t " +
			"--mount=from=x true --from=c", want: []string{"a", "b"}},
		"syntax": {text: "\ufeff# syntax = docker/dockerfile:1 \n# escape=`\nFROM a\nRUN x `\n  FROM b\n",
			want: []string{"docker/dockerfile:1", "a"}},
		"no syntax": {text: "# a comment\n# syntax=docker/dockerfile:1\nFROM a\n", want: []string{"a"}},
		"continued": {text: "FROM \\\n  # why\n\n  a \\\n  AS x\r\nRUN echo \\\\\nFROM b", want: []string{"a", "b"}},
		"heredocs": {text: "FROM a\nRUN <<EOF cat >x\nFROM no\nEOF\nCOPY <<-\"A\" <<B /x\nFROM no\n\tA\nFROM " +
			"no\nB\nFROM b\n", want: []string{"a", "b"}},
		"no heredoc": {text: "FROM a\nRUN echo 1 <<EOF\nFROM b\nRUN echo $((1<<X))\n", want: []string{"a", "b"}},
	} {
		var got []string
		d, err := Parse([]byte(c.text), c.args)
		if err == nil {
			got = d.Images()
		}
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte("# syntax=front\nFROM devel AS Build\nFROM build AS more\nFROM scratch\n"+
		"COPY --from=tools / /\nFROM runtime AS build\nFROM build AS last\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"": "runtime", "last": "runtime", "more": "devel", "BUILD": "runtime",
		"0": "devel", "2": "", "4": "runtime"} {
		if got, err := d.Base(target); got != want || err != nil {
			t.Errorf("%q: %q, want %q: %v", target, got, want, err)
		}
	}
	for _, target := range []string{"5", "-1", "none", "tools"} {
		want := fmt.Sprintf("there is no stage %q: the target is one of build, more, 2, build, last", target)
		if _, err := d.Base(target); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", target, err, want)
		}
	}
}

// A pinned Dockerfile differs from the original only in the names of images.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"# syntax=a\nARG X=b\nFROM $X AS c\nCOPY --from=d / /\nRUN --mount=from=e,type=bind <<EOF\nFROM f\nEOF\n",
		"FROM a \\\n# b\nAS c\n", "\ufeffFROM \"a\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzing.Frugal(t, len(text), func() {
			d, err := Parse(text, map[string]string{"GIVEN": "g"})
			if err != nil {
				return
			}
			pins := map[string]string{}
			for i, m := range d.mentions {
				if m.from >= m.to || m.to > len(text) || i > 0 && d.mentions[i-1].to > m.from || m.ref == "" {
					t.Fatalf("%+v", d.mentions)
				}
				pins[m.ref] = "pinned.example/image:1"
			}
			out, err := d.Pinned(pins)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(out, nil)
			if err != nil && len(out) <= MaxSize && !bytes.Contains(text, []byte("$")) {
				t.Fatalf("%v\n%s", err, out)
			}
			if err == nil {
				for _, m := range again.mentions {
					if m.ref != "pinned.example/image:1" {
						t.Fatalf("%s is left in\n%s", m.ref, out)
					}
				}
			}
		})
	})
}
