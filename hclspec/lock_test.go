package hclspec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
)

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
	spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir, Lock: &lockfile.Lock{
		Repos: map[string]lockfile.Repo{"r": {Revs: map[string]lockfile.Rev{
			"x": {Commit: a}, "x^": {Commit: b}, "x^^": {Commit: c},
		}}},
		Fetches: map[string]lockfile.Fetch{"https://example.com/f": {SHA256: strings.Repeat("d", 64)}},
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

// The prebuilt sources of an ancestor are those of the candidate, with the ancestor's hash in the place of the
// candidate's.
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
