package hclspec_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestAddressesReadBackWhatTheyWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := hclspec.Address{
			Kind:  rapid.StringMatching(`[a-z_]+`).Draw(t, "kind"),
			Name:  rapid.StringMatching(`[A-Za-z0-9._-]+`).Draw(t, "name"),
			Keyed: rapid.Bool().Draw(t, "keyed"),
		}
		if a.Keyed {
			a.Key = rapid.String().Draw(t, "key")
		}
		back, err := hclspec.ParseAddress(a.String())
		if err != nil || back != a {
			t.Fatalf("%q: got %#v, %v; want %#v", a.String(), back, err, a)
		}
	})
}

func TestParseAddressRefuses(t *testing.T) {
	for _, s := range []string{"", "wheel", ".vllm", "wheel.", `wheel.["k"]`, `wheel.v["k]`, `wheel.v["a"b"]`,
		`wheel.v["a\"]`, `wheel.v"x`} {
		if a, err := hclspec.ParseAddress(s); err == nil {
			t.Errorf("%q: got %#v, want an error", s, a)
		}
	}
}

func TestMatchAddress(t *testing.T) {
	for _, test := range []struct {
		pattern, address string
		want             bool
	}{
		{`wheel.vllm`, `wheel.vllm["22d33bac/human"]`, true},
		{`wheel.vllm`, `wheel.vllm`, true},
		{`wheel.vllm`, `wheel.vllm2`, false},
		{`wheel.vllm["22d33bac/human"]`, `wheel.vllm["22d33bac/human"]`, true},
		{`wheel.vllm["22d33bac/human"]`, `wheel.vllm`, false},
		{`benchmark.*["22d33bac/*"]`, `benchmark.serving["22d33bac/human"]`, true},
		{`benchmark.*["22d33bac/*"]`, `benchmark.serving["015069b0/human"]`, false},
		{`*.*["**"]`, `image.x["a/b"]`, true},
		{`*.*["*"]`, `image.x["a/b"]`, false},
		{`{wheel,image}.v*`, `image.vllm["a/b"]`, true},
		{`commit.v1.*`, `commit.v1.2`, true},
		{`wheel.x["a\*"]`, `wheel.x["a*"]`, true},
		{`wheel.x["a\*"]`, `wheel.x["ab"]`, false},
	} {
		got, err := hclspec.MatchAddress(test.pattern, test.address)
		if err != nil || got != test.want {
			t.Errorf("%s against %s: got %v, %v; want %v", test.pattern, test.address, got, err, test.want)
		}
	}
	for _, pattern := range []string{"wheel", `wheel.[`, `wheel.x["["]`} {
		if _, err := hclspec.MatchAddress(pattern, "wheel.x"); err == nil {
			t.Errorf("%s: want an error", pattern)
		}
	}
}

func TestText(t *testing.T) {
	w := hclspec.Address{Kind: "wheel", Name: "w", Key: "c/v", Keyed: true}
	f := hclspec.Address{Kind: "fetch", Name: "f"}
	text := hclspec.Text{{Literal: "cat "}, {Ref: w}, {Literal: "/a "}, {Ref: f}, {Literal: " "}, {Ref: w}}
	if got, want := text.String(), `cat ${wheel.w["c/v"]}/a ${fetch.f} ${wheel.w["c/v"]}`; got != want {
		t.Errorf("String: got %s, want %s", got, want)
	}
	if got := text.Refs(); len(got) != 2 || got[0] != w || got[1] != f {
		t.Errorf("Refs: got %v", got)
	}
	if got, want := text.Expand(func(a hclspec.Address) string { return "/" + a.Name }), "cat /w/a /f /w"; got != want {
		t.Errorf("Expand: got %s, want %s", got, want)
	}
}

func TestTrialAddresses(t *testing.T) {
	for _, group := range []string{"", "22d33bac", "22d33bac/human", "a#b", "#"} {
		at := hclspec.TrialAddress("serving", group, 12)
		if parsed, err := hclspec.ParseAddress(at.String()); err != nil || parsed != at {
			t.Errorf("%s: %v, %v", at, parsed, err)
		}
		if got, block := at.Trial(); got != group || block != 12 {
			t.Errorf("%s: block %d of %q", at, block, got)
		}
	}
	for _, key := range []string{"", "c", "c#", "c#x"} {
		if group, block := (hclspec.Address{Kind: "task", Name: "t", Key: key, Keyed: true}).Trial(); group != "" ||
			block != 0 {
			t.Errorf("%q: block %d of %q", key, block, group)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add(`wheel.vllm["22d33bac/human"]`)
	f.Add(`commit.v1.2`)
	f.Add(`a.b["\\\""]`)
	f.Fuzz(func(t *testing.T, s string) {
		fuzzing.Frugal(t, len(s), func() {
			a, err := hclspec.ParseAddress(s)
			if err != nil {
				return
			}
			if back, err := hclspec.ParseAddress(a.String()); err != nil || back != a {
				t.Fatalf("%q → %q → %#v, %v; want %#v", s, a.String(), back, err, a)
			}
		})
	})
}
