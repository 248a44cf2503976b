package hclspec_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func anyLock(t *rapid.T) *hclspec.Lock {
	name := rapid.StringMatching(`[a-z][a-z0-9_]{0,8}`)
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 ./:^~*\"\\${%é")), 0, 20, -1)
	hash := rapid.StringMatching(`[0-9a-f]{40}`)
	wheels := rapid.MapOfN(name, rapid.MapOfN(text, text, 0, 3), 0, 3).Draw(t, "wheels")
	nearest, refused := map[string]map[string]hclspec.NearLock{}, map[string]map[string]string{}
	for name := range wheels {
		if rapid.Bool().Draw(t, "is near") {
			nearest[name] = rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) hclspec.NearLock {
				return hclspec.NearLock{Commit: hash.Draw(t, "ancestor"), Back: rapid.IntRange(1, 1000).Draw(t, "back")}
			}), 1, 3).Draw(t, "nearest")
		}
		if rapid.Bool().Draw(t, "is refused") {
			refused[name] = rapid.MapOfN(text, text, 1, 3).Draw(t, "refused")
		}
	}
	return &hclspec.Lock{
		Repos: rapid.MapOfN(name, rapid.Custom(func(t *rapid.T) hclspec.RepoLock {
			return hclspec.RepoLock{
				Location: text.Draw(t, "location"),
				Revs: rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) hclspec.RevLock {
					return hclspec.RevLock{Commit: hash.Draw(t, "commit"), Tree: hash.Draw(t, "tree")}
				}), 0, 3).Draw(t, "revs"),
				Described: described(rapid.MapOfN(hash, text, 0, 2).Draw(t, "described")),
				Outside:   rapid.MapOfN(text, rapid.MapOfN(hash, hash, 0, 3), 0, 2).Draw(t, "outside"),
			}
		}), 0, 3).Draw(t, "repos"),
		Images: rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) hclspec.ImageLock {
			digest := rapid.StringMatching(`sha256:[0-9a-f]{64}`).Draw(t, "digest")
			return hclspec.ImageLock{Digest: digest, Size: rapid.Int64Range(0, 1<<50).Draw(t, "size")}
		}), 0, 3).Draw(t, "images"),
		Fetches: rapid.MapOfN(text, rapid.Custom(func(t *rapid.T) hclspec.FetchLock {
			return hclspec.FetchLock{SHA256: hash.Draw(t, "sha256"), Size: rapid.Int64Range(0, 1<<50).Draw(t, "size")}
		}), 0, 3).Draw(t, "fetches"),
		Fixes: rapid.MapOfN(name, rapid.Custom(func(t *rapid.T) []hclspec.LearntFix {
			return []hclspec.LearntFix{{Commit: "a", At: "image.i", Evidence: "e"},
				{Commit: "a", At: "wheel.w", Evidence: "e"}, {Commit: "b", At: "", Evidence: text.Draw(t, "evidence")}}
		}), 0, 3).Draw(t, "fixes"),
		Wheels: wheels, Nearest: nearest, Refused: refused,
	}
}

func TestLockReadsBackWhatItWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lock := anyLock(t)
		src := lock.Bytes()
		back, diags := hclspec.ParseLock(src, "benchgraph.lock.hcl")
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

func TestLockHostileEvidence(t *testing.T) {
	lock := &hclspec.Lock{Fixes: map[string][]hclspec.LearntFix{"f": {{Commit: "c",
		Evidence: "\x00\xff${file(\"x\")}\n" + strings.Repeat("é", 1000)}}}}
	back, diags := hclspec.ParseLock(lock.Bytes(), "lock.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got := back.Fixes["f"][0].Evidence; !strings.Contains(got, `${file("x")}`) || len(got) > 1100 {
		t.Errorf("got %q", got)
	}
}

func TestLockMistakes(t *testing.T) {
	for src, want := range map[string]string{
		"repo \"a\" {\n  rev \"x\" {\n    commit = \"12\"\n  }\n}": "Invalid pin",
		"repo \"a\" {}\nrepo \"a\" {}":                             "Duplicate repo",
		`image "a" { digset = "x" }`:                               `Did you mean "digest"`,
		`fetch "a" { size = -1 }`:                                  "Number too small",
		`wheel "a" { prebuilt = { x = file("/etc/passwd") } }`:     "Functions may not be called",
		"repo \"a\" {\n  rev \"x\" {\n  }\n  rev \"x\" {\n  }\n}":  "diagnostic(s)",
		`<<<<<<< HEAD`: "required",
	} {
		lock, diags := hclspec.ParseLock([]byte(src), "lock.hcl")
		if lock != nil || !diags.HasErrors() || !strings.Contains(diags.Error(), want) {
			t.Errorf("%s: got %v, %v; want %q", src, lock, diags, want)
		}
	}
}

func TestLockPinsRevisions(t *testing.T) {
	a, b, c := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)
	dir := project(t, []byte(`
-- benchmarks.hcl --
repo "r" { path = "." }
commit "x" {}
commit "y" { parent = "main" }
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "older" { rev = "${each.commit.parent}^" }
variant "human" {}
wheel "w" {
  for_each = candidates
  prebuilt = ["https://example.com/${each.rev}/${each.commit.rev}"]
}
fetch "f" { url = "https://example.com/f" }
`))
	spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir, Lock: &hclspec.Lock{
		Repos: map[string]hclspec.RepoLock{"r": {Revs: map[string]hclspec.RevLock{
			"x": {Commit: a}, "x^": {Commit: b}, "x^^": {Commit: c},
		}}},
		Fetches: map[string]hclspec.FetchLock{"https://example.com/f": {SHA256: strings.Repeat("d", 64)}},
	}})
	if diags.HasErrors() {
		t.Fatal(told(t, files, diags))
	}
	revs := map[string]string{}
	for _, c := range spec.Candidates {
		revs[c.Key] = c.Rev
	}
	want := map[string]string{"x/base": b, "x/older": c, "x/human": a, "y/base": "main", "y/older": "main^",
		"y/human": "y"}
	if diff := cmp.Diff(want, revs); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	if got, want := spec.Wheels[0].Prebuilt[0], "https://example.com/"+b+"/"+a; got != want {
		t.Errorf("each.rev and each.commit.rev: got %s, want %s", got, want)
	}
	if spec.Commits[0].Parent != b || spec.Fetches[0].SHA256 != strings.Repeat("d", 64) {
		t.Errorf("got %+v, %+v", spec.Commits[0], spec.Fetches[0])
	}
}

func FuzzParseLock(f *testing.F) {
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
		if len(src) > maxInput {
			return
		}
		var lock *hclspec.Lock
		var diags hcl.Diagnostics
		fuzzing.Contained(t, func() { lock, diags = hclspec.ParseLock(src, "lock.hcl") })
		if (lock == nil) != diags.HasErrors() {
			t.Fatalf("lock %v, diagnostics %v", lock, diags)
		}
		if lock == nil {
			return
		}
		back, diags := hclspec.ParseLock(lock.Bytes(), "lock.hcl")
		if diags.HasErrors() {
			t.Fatalf("%s\n%s", diags, lock.Bytes())
		}
		if again := back.Bytes(); !bytes.Equal(lock.Bytes(), again) {
			t.Fatalf("%s\n%s", lock.Bytes(), again)
		}
	})
}

// The prebuilt sources of an ancestor are those of the candidate with the ancestor's hash in the place of its own.
func TestPrebuiltOfAnotherRevision(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(`
repo "r" { path = "." }
commit "c" { params = { tag = "t" } }
variant "v" {}
locals { host = "https://example.com" }
wheel "w" {
  for_each = candidates
  source   = each.source
  overlay  = ["**/*.py"]
  nearest  = 3
  prebuilt = [for suffix in ["x", each.commit.params.tag] : "${local.host}/${each.rev}/${substr(each.value.rev, 0, 7)}-${suffix}.whl"]
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	rev := strings.Repeat("0123456789", 4)
	want := []string{"https://example.com/" + rev + "/0123456-x.whl", "https://example.com/" + rev + "/0123456-t.whl"}
	if diff := cmp.Diff(want, spec.Wheels[0].PrebuiltOf(rev)); diff != "" {
		t.Error(diff)
	}
	if got := spec.Wheels[0].Prebuilt[0]; got != "https://example.com/c/c-x.whl" {
		t.Errorf("its own is %s", got)
	}
}

// described is what a lock that was read has of nothing.
func described(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}
