package funcs

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// packaging prints whether each version matches a specifier, by Python's reference of PEP 440, which comes with pip.
const packaging = `
import json, sys
from pip._vendor.packaging.specifiers import SpecifierSet
versions, specifiers = json.load(sys.stdin)
print(json.dumps([[SpecifierSet(s).contains(v, prereleases=True) for s in specifiers] for v in versions]))
`

// TestVersionsMatchAsInPython compares with Python's own answers: the order of versions is not enough, since "<0.6.5"
// excludes the pre-releases of 0.6.5.
func TestVersionsMatchAsInPython(t *testing.T) {
	versions := strings.Fields(`0.6.4 0.6.5.dev1 0.6.5a1 0.6.5b2.post3 0.6.5rc1 0.6.5 0.6.5+cu118 0.6.5.post1
		0.6.5.post1.dev2 0.6.6.dev2 0.6.3.post2.dev398+g4a18 1.0.dev3+g1 1.0a1 1.0 1.0.0 1.0.post1+l 2!0.1`)
	specifiers := strings.Fields(`<0.6.5 <=0.6.5 >0.6.5 >=0.6.5 ==0.6.5 !=0.6.5 ~=0.6.5 ==0.6.* !=0.6.* <0.6.5rc2
		<0.6.5.dev2 >0.6.5.post0 <1.0 >1.0 ==1.0.0 >=0.6.5.dev0 >0.6.5.dev0 <0.6.5.post1 ~=0.6.5.dev0 ==0.6.5+cu118 !=0.6.5+cu118
		>=0.6.3,<0.6.5 <2!0.1 >0.6,<1.0,!=0.6.5`)
	asked, err := json.Marshal([][]string{versions, specifiers})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", packaging)
	cmd.Stdin = strings.NewReader(string(asked))
	out, err := cmd.Output()
	if err != nil {
		needtest.Missing(t, "python3 with pip: %v", err)
	}
	var want [][]bool
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for i, version := range versions {
		for k, specifier := range specifiers {
			got, err := pep440Match.Call([]cty.Value{cty.StringVal(version), cty.StringVal(specifier)})
			if err != nil || got.True() != want[i][k] {
				t.Errorf("pep440_match(%q, %q) is %#v (%v), and %v in Python", version, specifier, got, err, want[i][k])
			}
		}
	}
}
