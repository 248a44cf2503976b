package lockfile_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func anyLock(t *rapid.T) *lockfile.Lock {
	name := rapid.StringMatching(`[a-z][a-z0-9_]{0,8}`)
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 ./:^~*\"\\${%é")), 0, 20, -1)
	hash := rapid.StringMatching(`[0-9a-f]{40}`)
	wheels := rapid.MapOfN(name, rapid.MapOfN(text, text, 0, 3), 0, 3).Draw(t, "wheels")
	nearest, refused := map[string]map[string]lockfile.Near{}, map[string]map[string]string{}
	for name := range wheels {
		if rapid.Bool().Draw(t, "is near") {
			nearest[name] = rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) lockfile.Near {
				return lockfile.Near{Commit: hash.Draw(t, "ancestor"), Back: rapid.IntRange(1, 1000).Draw(t, "back")}
			}), 1, 3).Draw(t, "nearest")
		}
		if rapid.Bool().Draw(t, "is refused") {
			refused[name] = rapid.MapOfN(text, text, 1, 3).Draw(t, "refused")
		}
	}
	return &lockfile.Lock{
		Repos: rapid.MapOfN(name, rapid.Custom(func(t *rapid.T) lockfile.Repo {
			return lockfile.Repo{
				Location: text.Draw(t, "location"),
				Revs: rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) lockfile.Rev {
					return lockfile.Rev{Commit: hash.Draw(t, "commit"), Tree: hash.Draw(t, "tree")}
				}), 0, 3).Draw(t, "revs"),
				Described: described(rapid.MapOfN(hash, text, 0, 2).Draw(t, "described")),
				Outside:   rapid.MapOfN(text, rapid.MapOfN(hash, hash, 0, 3), 0, 2).Draw(t, "outside"),
			}
		}), 0, 3).Draw(t, "repos"),
		Images: rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) lockfile.Image {
			digest := rapid.StringMatching(`sha256:[0-9a-f]{64}`).Draw(t, "digest")
			return lockfile.Image{Digest: digest, Size: rapid.Int64Range(0, 1<<50).Draw(t, "size"),
				Requires: rapid.MapOfN(name, text, 0, 2).Draw(t, "requires")}
		}), 0, 3).Draw(t, "images"),
		Fetches: rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) lockfile.Fetch {
			return lockfile.Fetch{SHA256: hash.Draw(t, "sha256"), Size: rapid.Int64Range(0, 1<<50).Draw(t, "size")}
		}), 0, 3).Draw(t, "fetches"),
		Fixes: rapid.MapOfN(name, rapid.Custom(func(t *rapid.T) []lockfile.Fix {
			rev := hash.Draw(t, "fixed revision")
			return []lockfile.Fix{{Commit: "a", Rev: rev, At: "image.i", Evidence: "e"},
				{Commit: "a", Rev: rev, At: "wheel.w", Evidence: "e"},
				{Commit: "b", At: "", Evidence: text.Draw(t, "evidence")}}
		}), 0, 3).Draw(t, "fixes"),
		Wheels: wheels, Nearest: nearest, Refused: refused,
	}
}

func TestReadsBackWhatItWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lock := anyLock(t)
		src := lock.Bytes()
		back, diags := lockfile.Parse(src, "benchgraph.lock.hcl")
		if diags.HasErrors() {
			t.Fatalf("%s\n%s", diags, src)
		}
		if diff := cmp.Diff(lock, back); diff != "" {
			t.Fatalf("-written +read\n%s\n%s", diff, src)
		}
		if again := back.Bytes(); !bytes.Equal(src, again) {
			t.Fatalf("written twice, and different:\n%s\n%s", src, again)
		}
	})
}

func TestHostileEvidence(t *testing.T) {
	lock := &lockfile.Lock{Fixes: map[string][]lockfile.Fix{"f": {{Commit: "c",
		Evidence: "\x00\xff${file(\"x\")}\n" + strings.Repeat("é", 1000)}}}}
	back, diags := lockfile.Parse(lock.Bytes(), "lock.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got := back.Fixes["f"][0].Evidence; !strings.Contains(got, `${file("x")}`) || len(got) > 1100 {
		t.Errorf("got %q", got)
	}
}

func TestMistakes(t *testing.T) {
	for src, want := range map[string]string{
		"repo \"a\" {\n  rev \"x\" {\n    commit = \"12\"\n  }\n}": "Invalid pin",
		"repo \"a\" {}\nrepo \"a\" {}":                             "Duplicate repo",
		`image "a" { digset = "x" }`:                               `Did you mean "digest"`,
		`fetch "a" { from_the_future = 1 }`:                        "A newer benchgraph may have written this file",
		`from_the_future "a" {}`:                                   "A newer benchgraph may have written this file",
		`fetch "a" { size = -1 }`:                                  "Number too small",
		`wheel "a" { prebuilt = { x = file("/etc/passwd") } }`:     "Functions may not be called",
		"repo \"a\" {\n  rev \"x\" {\n  }\n  rev \"x\" {\n  }\n}":  "diagnostic(s)",
		`<<<<<<< HEAD`: "required",
	} {
		lock, diags := lockfile.Parse([]byte(src), "lock.hcl")
		if lock != nil || !diags.HasErrors() || !strings.Contains(diags.Error(), want) {
			t.Errorf("%s: got %v, %v; want %q", src, lock, diags, want)
		}
	}
}

// Older versions named a block by two words in a try or in noise, and added both again with each call.
func TestBlocksOfOlderLocks(t *testing.T) {
	const older = `fix "f" {
  commits = ["c"]
  at      = { c = "benchmark.b benchmark.b noise noise wheel.w" }
}`
	lock, diags := lockfile.Parse([]byte(older), "lock.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := []lockfile.Fix{{Commit: "c", At: "benchmark.b"}, {Commit: "c", At: "wheel.w"}}
	if diff := cmp.Diff(want, lock.Fixes["f"]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`repo "vllm" {
  location = "https://example.com"
  rev "22d33bac^" { commit = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }
  outside "vllm/**" { digests = { a = "b" } }
}
image "x" { digest = "sha256:00" }
fetch "u" {
  sha256 = "00"
  size   = 3
}
fix "aimv2" {
  commits  = ["015069b0"]
  evidence = { "015069b0" = "line" }
}
wheel "w" { prebuilt = { "a/b" = "u" } }`))
	f.Add([]byte(`repo "a" { rev = ((((`))
	f.Add([]byte("<<<<<<< ours\n=======\n>>>>>>> theirs\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 64<<10 {
			return
		}
		var lock *lockfile.Lock
		var diags hcl.Diagnostics
		fuzzing.Contained(t, func() { lock, diags = lockfile.Parse(src, "lock.hcl") })
		if (lock == nil) != diags.HasErrors() {
			t.Fatalf("lock %v, diagnostics %v", lock, diags)
		}
		if lock == nil {
			return
		}
		back, diags := lockfile.Parse(lock.Bytes(), "lock.hcl")
		if diags.HasErrors() {
			t.Fatalf("%s\n%s", diags, lock.Bytes())
		}
		if again := back.Bytes(); !bytes.Equal(lock.Bytes(), again) {
			t.Fatalf("%s\n%s", lock.Bytes(), again)
		}
	})
}

// described returns m, or nil if m is empty, as a lock has it after Parse.
func described(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}
