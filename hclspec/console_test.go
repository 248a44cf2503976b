package hclspec_test

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/hclspec"
)

// TestFunctions evaluates calls of every function, through the console.
func TestFunctions(t *testing.T) {
	dir := project(t, []byte(`
-- benchmarks.hcl --
locals { list = ["b", "a"] }
fetch "f" { url = "https://example.com/f" }
wheel "w" {
  for_each = toset(["x"])
  prebuilt = ["https://example.com"]
}
-- data/a.txt --
text
-- data/sub/b.txt --
more
`))
	for expr, want := range map[string]string{
		`abs(-1)`: `1`, `ceil(1.2)`: `2`, `floor(1.8)`: `1`, `max(1, 3, 2)`: `3`, `min(2, 1)`: `1`,
		`pow(2, 10)`: `1024`,
		`log(8, 2)`:  `3`, `signum(-3)`: `-1`, `parseint("ff", 16)`: `255`, `sum([1, 2.5])`: `3.5`,
		`range(3)`: "[0, 1, 2]", `range(1, 4)`: "[1, 2, 3]", `range(4, 1)`: `[4, 3, 2]`, `range(0, 1, 0.5)`: `[0, 0.5]`,
		`range(0)`:            `[]`,
		`length(range(2000))`: `2000`, `length("añ")`: `2`, `length({ a = 1 })`: `1`, `length([1, 2])`: `2`,
		`chomp("a\n")`: `"a"`, `indent(2, "a\nb")`: `"a\n  b"`, `join("-", local.list)`: `"b-a"`,
		`split(",", "a,b")`: `["a", "b"]`,
		`lower("A")`:        `"a"`, `upper("a")`: `"A"`, `title("a b")`: `"A B"`, `strrev("abc")`: `"cba"`,
		`substr("hello", 1, 3)`: `"ell"`,
		`trim("xax", "x")`:      `"a"`, `trimprefix("xa", "x")`: `"a"`, `trimsuffix("ax", "x")`: `"a"`,
		`trimspace(" a ")`:         `"a"`,
		`replace("a.b", ".", "-")`: `"a-b"`, `replace("a1b2", "/[0-9]/", "")`: `"ab"`,
		`regexreplace("a1", "[0-9]", "x")`: `"ax"`,
		`regex("[a-z]+", "12ab")`:          `"ab"`, `regexall("[a-z]", "a1b")`: `["a", "b"]`,
		`startswith("ab", "a")`: `true`, `endswith("ab", "a")`: `false`, `strcontains("abc", "b")`: `true`,
		`format("%s-%03d", "a", 7)`: `"a-007"`, `formatlist("%s!", local.list)`: `["b!", "a!"]`,
		`formatdate("YYYY", "2024-05-01T00:00:00Z")`: `"2024"`,
		`timeadd("2024-05-01T00:00:00Z", "1h")`:      `"2024-05-01T01:00:00Z"`,
		`basename("a/b")`:                            `"b"`, `dirname("a/b")`: `"a"`, `urlencode("a b")`: `"a+b"`,
		`base64encode("a")`: `"YQ=="`, `base64decode("YQ==")`: `"a"`, `md5("")`: `"d41d8cd98f00b204e9800998ecf8427e"`,
		`sha1("")`: `"da39a3ee5e6b4b0d3255bfef95601890afd80709"`, `substr(sha256(""), 0, 8)`: `"e3b0c442"`,
		`substr(sha512(""), 0, 8)`:   `"cf83e135"`,
		`csvdecode("a,b\n1,2")[0].b`: `"2"`, `jsondecode("{\"a\": [1]}").a[0]`: `1`,
		`jsonencode({ a = 1 })`:        `"{\"a\":1}"`,
		`yamldecode("a: [1, 2]").a[1]`: `2`, `yamlencode({ a = 1 })`: `"\"a\": 1\n"`,
		`chunklist(["a", "b", "c"], 2)[1]`: `["c"]`, `coalesce(null, "", "x")`: `"x"`,
		`coalescelist([], ["a"])`:  `["a"]`,
		`compact(["a", "", null])`: `["a"]`, `concat(["a"], ["b"])`: `["a", "b"]`, `contains(local.list, "a")`: `true`,
		`distinct(["a", "b", "a"])`: `["a", "b"]`, `distinct([1, 1])`: `[1]`, `element(local.list, 3)`: `"a"`,
		`flatten([["a"], ["b"]])`: `["a", "b"]`,
		`index(local.list, "a")`:  `1`, `keys({ b = 1, a = 2 })`: `["a", "b"]`, `values({ b = 1, a = 2 })`: `[2, 1]`,
		`lookup({ a = 1 }, "a")`: `1`, `lookup({ a = 1 }, "b", 2)`: `2`, `lookup({}, "b", null)`: `null`,
		`merge({ a = 1 }, { b = 2 }).b`: `2`, `one([])`: `null`, `one(["a"])`: `"a"`,
		`reverse(local.list)`: `["a", "b"]`, `setintersection(["a", "b"], ["b"])`: `["b"]`,
		`setproduct(["a"], ["b"])[0]`:    `["a", "b"]`,
		`setsubtract(["a", "b"], ["b"])`: `["a"]`, `setunion(["a"], ["b"])`: `["a", "b"]`,
		`slice(local.list, 0, 1)`: `["b"]`, `sort(local.list)`: `["a", "b"]`,
		`tobool("true")`: `true`, `tonumber("1")`: `1`, `tostring(1)`: `"1"`, `tolist(["a"])`: `["a"]`,
		`toset(["a", "a"])`: `["a"]`, `tomap({ a = 1 }).a`: `1`,
		`transpose({ a = ["x", "y"] }).y`: `["a"]`, `zipmap(["a"], [1]).a`: `1`, `alltrue([true, false])`: `false`,
		`anytrue([true, false])`:    `true`,
		`try(local.missing.x, "d")`: ``, `try({}.x, "d")`: `"d"`, `can({}.x)`: `false`,
		`file("data/a.txt")`: `"text\n"`, `fileexists("data/none")`: `false`, `filebase64("data/a.txt")`: `"dGV4dAo="`,
		`fileset("data", "**")`: `["a.txt", "sub/b.txt"]`, `substr(filesha256("data/a.txt"), 0, 8)`: `"b9e68e1b"`,
		`fileset(".", "data/*")`:                       `["data/a.txt"]`,
		`matchkeys(["a", "b", "c"], [1, 2, 1], ["1"])`: `["a", "c"]`, `matchkeys(["a"], ["x"], [])`: `[]`,
		`matchkeys(["a"], [], ["x"])`:          ``,
		`filemd5("data/a.txt")`:                `"e1cbb0c3879af8347246f12c559a86b5"`,
		`substr(filesha1("data/a.txt"), 0, 8)`: `"aa785adc"`, `substr(filesha512("data/a.txt"), 0, 8)`: `"052cf2a5"`,
		`abspath("x")`: `"` + dir + `/x"`,
		`pep440_match("0.8.2.dev3", ">=0.6.3,<0.9")`:          `true`,
		`pep440_match("0.6.3.post2.dev398+g4a18", ">=0.6.3")`: `true`,
		`pep440_match("0.6.5", ">=0.6.3,<0.6.5")`:             `false`,
		`pep440_match("1.0rc1", ">=0.9")`:                     `true`,
		`pep440_match("1.4.2", "~=1.4")`:                      `true`,
		`pep440_match("1.4.2", "==1.4.*")`:                    `true`,
		`pep440_match(null, ">=1")`:                           `false`,
		`fetch.f`:                                             `fetch.f`,
		`[wheel.w, "${fetch.f}/x"]`:                           "[{\n  x = wheel.w[\"x\"]\n}, \"$${fetch.f}/x\"]",
		`lookup({ a = fetch.f }, "a")`:                        `fetch.f`,
	} {
		got, files, diags := hclspec.Eval(hclspec.Options{Dir: dir}, expr)
		if want == "" {
			if !diags.HasErrors() {
				t.Errorf("%s: got %s, want an error", expr, got)
			}
			continue
		}
		if diags.HasErrors() {
			t.Errorf("%s: %s", expr, told(t, files, diags))
		}
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s: got %s, want %s", expr, got, want)
		}
	}
}

func TestFunctionsAreBounded(t *testing.T) {
	for _, expr := range []string{
		`yamldecode("` + strings.Repeat("[", 5000) + `")`, `yamldecode("` + strings.Repeat("- ", 5000) + `a")`,
		`jsondecode("` + strings.Repeat("[", 100_000) + `")`, `range(1e9)`, `indent(1e9, "a\nb")`,
		`format("%*d", 1000000000, 1)`,
		`format("%0999999999d", 1)`, `yamldecode("a: &a [x]\nb: [` + strings.Repeat("*a, ", 100) + `]")`,
		`lookup({}, "a")`,
		`upper(fetch.f)`, `length(fetch.f)`, `jsonencode([fetch.f])`, `base64decode("AA==")`, `base64decode("/w==")`,
		`"a\u0000b"`,
		strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000), strings.Repeat("-", 10_000) + "1",
		`"` + strings.Repeat("${", 200) + strings.Repeat("}", 200) + `"`, `setproduct(range(10000), range(1000))`,
		`1 +`, ``,
	} {
		dir := project(t, []byte("-- benchmarks.hcl --\nfetch \"f\" { url = \"https://example.com\" }\n"))
		if got, _, diags := hclspec.Eval(hclspec.Options{Dir: dir}, expr); !diags.HasErrors() {
			t.Errorf("%.60s: got %.60s, want an error", expr, got)
		}
	}
}

func TestConsoleWithoutAProject(t *testing.T) {
	if got, _, diags := hclspec.Eval(hclspec.Options{Dir: t.TempDir()}, `1 + 1`); got != "2" || len(diags) > 0 {
		t.Errorf("got %q, %v", got, diags)
	}
}

func TestFormat(t *testing.T) {
	if got, want := string(hclspec.Format([]byte("task \"a\" {\ncommand=\"x\"\n  env    = {}\n}\n"))),
		"task \"a\" {\n  command = \"x\"\n  env     = {}\n}\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
