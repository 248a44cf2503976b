// Package draft writes the first file of a project: a repository, commits, and a command that measures them.
package draft

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Commit is a commit to measure.
type Commit struct {
	Name  string // no slash, no quote
	Rev   string
	Title string
}

// Bench is the command that runs in the tree of a candidate, and how its output is read.
type Bench struct {
	Command string   // for sh
	Dir     string   // below the tree, slash-separated; empty: its top
	Protect []string // patterns of the files that do the measuring
	File    string   // file below $OUT that is read; empty: the standard output
	Metric  string   // the deciding metric
	Match   string   // regular expression whose group reads the metric; empty: in a known format
	Better  string   // higher or lower; without Match, Metric is a path in JSON
	Hint    string   // comment for the user above the command; may be empty
}

// Toolchain returns the benchmark command of a language, by the names of files at the top of a tree; false if no such
// file is there.
func Toolchain(has func(name string) bool) (Bench, bool) {
	switch {
	case has("go.mod"):
		return Bench{
			Command: "go test -run '^$' -bench . -count 1 ./...", Protect: []string{"**/*_test.go"}, Metric: "ns/op",
			Hint: "All benchmarks of the module: name one package and one benchmark where that takes long.",
		}, true
	case has("Cargo.toml"):
		return Bench{
			Command: "cargo bench", Protect: []string{"benches/**"}, Metric: "time", Better: "lower",
			Match: `time:\s+\[\S+ \S+ ([0-9.]+ \S+)`,
			Hint:  "This reads one benchmark of criterion: name it, as in cargo bench -- NAME.",
		}, true
	case has("pyproject.toml"), has("setup.py"):
		return Bench{
			Command: "python3 -m pytest --benchmark-only --benchmark-json=$OUT/benchmark.json",
			Protect: []string{"**/test_*.py", "**/conftest.py", "benchmarks/**"}, File: "benchmark.json",
			Metric: "time_mean",
			Hint:   "This needs pytest-benchmark where it runs.",
		}, true
	}
	return Bench{}, false
}

// Known returns the Bench of a command that a user wrote: with the files that do the measuring, and the metric, if they
// are known.
func Known(command string) Bench {
	b := Bench{Command: command}
	for _, one := range []struct {
		word, file string
	}{{"go test", "go.mod"}, {"cargo bench", "Cargo.toml"}, {"pytest", "setup.py"}} {
		if strings.Contains(command, one.word) {
			like, _ := Toolchain(func(name string) bool { return name == one.file })
			b.Protect = like.Protect
			if one.file == "go.mod" {
				b.Metric = like.Metric
			}
		}
	}
	return b
}

// Project is the content of the file.
type Project struct {
	Head    []string // comment on top, a line each
	Repo    string   // path or URL
	Commits []Commit
	Blocks  string // further commit blocks, as text
	After   bool   // measure each commit against its parent; else it is the baseline itself
	Bench   Bench
}

// HCL returns the text of the file.
func (p *Project) HCL() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	comment := func(text string) {
		if text != "" {
			line("  # %s", text)
		}
	}
	for _, text := range p.Head {
		line("%s", strings.TrimRight("# "+text, " "))
	}
	line("\n# Toolchains keep their caches in your home, and a sandbox hides it. " +
		"Before you measure patches that you do not trust, take")
	line("# this out, and declare the caches as mounts.")
	line("benchgraph { sandbox = \"none\" }")
	line("\nrepo \"code\" {")
	if strings.Contains(p.Repo, "://") {
		line("  url = %s", quoted(p.Repo))
	} else {
		line("  path = %s", quoted(p.Repo))
	}
	line("}\n")
	for _, c := range p.Commits {
		line("commit %s {", quoted(c.Name))
		line("  rev = %s", quoted(c.Rev))
		if c.Title != "" {
			line("  title = %s", quoted(c.Title))
		}
		line("}\n")
	}
	b.WriteString(p.Blocks)
	p.variants(line)
	line("benchmark \"bench\" {")
	line("  for_each = candidates")
	comment(p.Bench.Hint)
	line("  data = { \"src/\" = each.source }")
	line("  command = %s", quoted("cd "+shellWord("src/"+p.Bench.Dir)+" && "+p.Bench.Command))
	line("  quiet = true # nothing else of benchgraph's runs meanwhile")
	line("  metrics {")
	if p.Bench.Match == "" {
		line("    # A number that parse does not list needs a metric block with match and better.")
	}
	line("    primary = %s # the number that decides; benchgraph parse FILE lists those of an output",
		quoted(p.Bench.Metric))
	if p.Bench.File != "" {
		line("    file = %s # in $OUT", quoted(p.Bench.File))
	}
	if p.Bench.Match != "" || p.Bench.Better != "" {
		line("    metric %s {", quoted(p.Bench.Metric))
		if p.Bench.Match != "" {
			line("      match = %s", quoted(p.Bench.Match))
		} else {
			line("      json = %s", quoted(p.Bench.Metric))
		}
		if p.Bench.Better != "" {
			line("      better = %s", quoted(p.Bench.Better))
		}
		line("    }")
	}
	line("  }\n}\n")
	line("compare \"bench\" {\n  of = [benchmark.bench]\n}")
	if p.After {
		line("\nreport \"report\" {\n  of = [compare.bench]\n  formats = [\"html\", \"markdown\", \"json\"]\n}")
	}
	return hclwrite.Format(b.Bytes())
}

// variants writes the variants.
func (p *Project) variants(line func(string, ...any)) {
	protect := func(before string) {
		if len(p.Bench.Protect) == 0 {
			return
		}
		words := make([]string, len(p.Bench.Protect))
		for i, pattern := range p.Bench.Protect {
			words[i] = quoted(pattern)
		}
		line(before + "  # These files measure: all candidates get those of the baseline.")
		line(before+"  protect = [%s]", strings.Join(words, ", "))
		line(before + "  protected = \"baseline\"")
	}
	line("variant \"before\" {\n  baseline = true # what the others are compared with")
	if !p.After {
		protect("")
		line("}\n")
		return
	}
	line("  rev = each.commit.parent\n}\n")
	line("variant \"after\" {\n  rev = each.commit.rev")
	protect("")
	line("}\n")
	line("# Another way to make the same change, as a patch on the parent:")
	line("# variant \"patch\" {")
	line("#   rev = each.commit.parent")
	line("#   patch = \"patches/${each.commit.name}.diff\"")
	line("#   optional = true")
	protect("# ")
	line("# }\n")
}

// quoted returns text as HCL writes it.
func quoted(text string) string { return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes()) }

// shellWord returns a path as a word of the shell.
func shellWord(path string) string {
	path = strings.TrimSuffix(path, "/")
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
