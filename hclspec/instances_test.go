package hclspec_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

// TestInstancesAreEvaluatedAtOnce has instances that read files beside attributes that are evaluated on all cores: with
// -race, two goroutines that read files are an error. Mistakes are reported as if instances were read one after the
// other.
func TestInstancesAreEvaluatedAtOnce(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), fmt.Sprint("text of ", i))
	}
	read := func(command string) (*hclspec.Spec, string) {
		write(t, filepath.Join(dir, "benchmarks.hcl"), `
task "read" {
  for_each = toset([for i in range(300) : tostring(i)])
  env      = { TEXT = file(each.key) }
  command  = `+command+`
}
`)
		spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
		return spec, told(t, files, diags)
	}
	spec, said := read(`"echo ${each.key}"`)
	if spec == nil || len(spec.Tasks) != 300 {
		t.Fatal(said)
	}
	for _, s := range spec.Tasks {
		want := fmt.Sprintf("echo %s, text of %s", s.Address.Key, s.Address.Key)
		if got := s.Command.Shell[0].Literal + ", " + s.Env["TEXT"][0].Literal; got != want {
			t.Errorf("%s: %q", s.Address, got)
		}
	}
	if spec, said = read(`tonumber(each.key) % 100 == 7 ? "${1 / 0}" : "true"`); spec != nil ||
		strings.Count(said, "Error") != 1 || !strings.Contains(said, `(for each.key = "107" and 2 more)`) {
		t.Error(said)
	}
}

// TestTheKeyOfEachIsTheSameByAllWays has expressions in which each.key is not the key of the instance, or is needed
// together with the rest of each.
func TestTheKeyOfEachIsTheSameByAllWays(t *testing.T) {
	dir := t.TempDir()
	read := func(forEach, value string) (*hclspec.Spec, string) {
		write(t, filepath.Join(dir, "benchmarks.hcl"), fmt.Sprintf(`
task "key" {
  for_each = %s
  command  = "true"
  env      = { V = %s }
}
`, forEach, value))
		spec, files, diags := hclspec.Load(hclspec.Options{Dir: dir})
		return spec, told(t, files, diags)
	}
	for value, want := range map[string]string{
		`each.key`:                   "a",
		`each["key"]`:                "a",
		`jsonencode(each)`:           `{"key":"a","value":"b"}`,
		`"${each.key}${each.value}"`: "ab",
		`[for each in [{ key = "x" }] : each.key][0]`: "x",
		`jsonencode({ (each.key) = 1 })`:              `{"a":1}`,
		`jsonencode({ "${each.key}" = 1 })`:           `{"a":1}`,
	} {
		if spec, said := read(`{ a = "b" }`, value); spec == nil {
			t.Errorf("%s: %s", value, said)
		} else if got := spec.Tasks[0].Env["V"][0].Literal; got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
	for value, want := range map[string]string{
		`jsonencode({ each.key = 1 })`: "Ambiguous attribute key",
		`each.key.part`:                "Unsupported attribute",
		`each.kye`:                     `each has no "kye"`,
	} {
		if spec, said := read(`["a"]`, value); spec != nil || !strings.Contains(said, want) {
			t.Errorf("%s: %s", value, said)
		}
	}
}

// TestAnInstanceAllocatesLittle counts allocations for each instance of a block that uses only the key of each. With an
// object of each for every instance, or with the decimal fractions of whole numbers, there are more.
func TestAnInstanceAllocatesLittle(t *testing.T) {
	const n = 1000
	dir := t.TempDir()
	allocated := func(count int) float64 {
		write(t, filepath.Join(dir, "benchmarks.hcl"), fmt.Sprintf(`
task "key" {
  for_each = toset([for i in range(%d) : tostring(i)])
  command  = "echo ${each.key}"
}
`, count))
		return testing.AllocsPerRun(1, func() {
			if spec, _, _ := hclspec.Load(hclspec.Options{Dir: dir}); len(spec.Tasks) != count {
				t.Fatal(len(spec.Tasks))
			}
		})
	}
	if each := (allocated(2*n) - allocated(n)) / n; each > 55 {
		t.Errorf("%.1f allocations for each instance", each)
	}
}
