package packs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchgraph/benchgraph/packs"
)

// declared lists what the files of a pack declare, as kind.name.
func declared(t *testing.T, pack string) []string {
	t.Helper()
	names, err := fs.Glob(packs.FS, pack+"/*.hcl")
	if err != nil || len(names) == 0 {
		t.Fatal(pack, err)
	}
	var all []string
	for _, name := range names {
		src, err := fs.ReadFile(packs.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, b := range f.Body.(*hclsyntax.Body).Blocks {
			if b.Type != "locals" {
				all = append(all, b.Type+"."+b.Labels[0])
				continue
			}
			for local := range b.Body.Attributes {
				all = append(all, "local."+local)
			}
		}
	}
	return all
}

// No name is in two packs; a name that may clash with names of a project begins with the name of its pack; and the page
// lists all names.
func TestNamesOfPacks(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "packs.md"))
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, pack := range []string{"vllm", "sglang"} {
		for _, address := range declared(t, pack) {
			kind, name, _ := strings.Cut(address, ".")
			if other, ok := owner[address]; ok {
				t.Errorf("%s is in %s and in %s", address, other, pack)
			}
			owner[address] = pack
			if slices.Contains([]string{"local", "known_issue"}, kind) && !strings.HasPrefix(name, pack+"_") {
				t.Errorf("%s of %s does not begin with the name of its pack", address, pack)
			}
			if kind != "failure" && !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/packs.md does not have %s", address)
			}
		}
	}
}

// The package of that name on PyPI belongs to somebody else: nothing may install it.
func TestNothingInstallsTheHijackedPackage(t *testing.T) {
	for _, name := range []string{"vllm/fixes.hcl", "sglang/fixes.hcl"} {
		src, err := fs.ReadFile(packs.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(src), "\n") {
			if strings.Contains(line, "pyairports") && (strings.Contains(line, "pip ") ||
				strings.Contains(line, "run ")) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
