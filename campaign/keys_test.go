package campaign_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// made has the kinds of nodes that a block makes, or helps to make.
var made = map[string][]string{
	"repo": {"repo"}, "commit": {"source"}, "variant": {"source", "trial"}, "fetch": {"fetch"},
	"wheel": {"wheel", "build"},
	"image": {"image", "push"}, "fix": {"build", "image", "trial"}, "known_issue": {"known_issue"},
	"benchmark": {"trial"},
	"compare":   {"compare"}, "report": {"report"}, "task": {"task"}, "mount": {"task"}, "benchgraph": {"task"},
	"cache": {"fill", "trial"},
}

// wholeProject writes every file that everything names, and fills in the addresses.
func wholeProject(t *testing.T) (*story, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	s := tell(t, map[string]string{
		"more/one.hcl": "", "more/two.hcl": "", "packs/first-pack/a.hcl": "", "packs/second-pack/a.hcl": "",
		"files/one": "1", "files/two": "2", "docker/Dockerfile": "FROM scratch AS stage\nFROM scratch AS other\n",
		"docker/Dockerfile.two": "FROM scratch AS stage\n", "Dockerfile": "FROM scratch AS stage\n",
		"one.jsonl": `{"claim": "commits", "count": 1}`, "two.jsonl": `{"claim": "commits", "count": 2}`,
		"in/one.txt": "1\n", "in/two.txt": "2\n",
		"machines/one.json": `{"format": "1.0", "devices": []}`,
		"machines/two.json": `{"format": "1.1", "devices": []}`,
	})
	for _, text := range []string{"one", "two", "three", "four"} {
		s.commit(map[string]string{"prog.sh": text + "\n", "a.py": text + "\n", "b.txt": text + "\n"})
		s.git("bundle", "create", "-q", filepath.Join(s.dir, text+".bundle"), "main")
	}
	for _, text := range []string{"a", "b"} {
		s.write("patches/"+text+".diff", s.patched("main", text+"\n"))
	}
	return s, fmt.Sprintf(everything, server.URL, "file://"+s.dir)
}

// keys returns the keys of a project's nodes, by address.
func (s *story) keys(text string) map[string]string {
	s.t.Helper()
	s.write("benchmarks.hcl", text)
	found := map[string]string{}
	diags := s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(s.t, err)
		for _, step := range plan.Steps {
			at, err := hclspec.ParseAddress(step.Node.Address)
			must(s.t, err)
			if !slices.ContainsFunc(p.Spec.Declared, func(a hclspec.Address) bool { return a.Name == at.Name }) {
				s.t.Errorf("%s has the name of no block", at) // commands about it would refuse it
			}
			if step.Action != engine.Skip { // a skipped node is not evaluated, and has no key of its own
				found[step.Node.Address] = step.Key.String()
			}
		}
	})
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
	return found
}

// changed returns the kinds of nodes that have another key or, if that counts, no longer exist.
func changed(before, after map[string]string, gone bool) []string {
	kinds := map[string]bool{}
	for address, key := range before {
		if now, ok := after[address]; now != key && (ok || gone) {
			kind, _, _ := strings.Cut(address, ".")
			kinds[kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// reads reports whether a node only reads stored results, so that a new key costs little.
func reads(kind string) bool { return kind == "benchmark" || kind == "compare" || kind == "report" }

func TestEveryAttributeIsOnItsSideOfTheKey(t *testing.T) {
	needtest.NoRace(t)
	t.Parallel()
	s, text := wholeProject(t)
	before := s.keys(text)
	pinned := s.lock.Bytes()
	for _, a := range hclspec.Attributes() {
		name := a.Block + "." + a.Attribute
		t.Run(name, func(t *testing.T) {
			e, ok := edits[name]
			if !ok {
				t.Fatal("nothing edits this attribute: add it to everything and to edits")
			}
			s.t = t
			var diags hcl.Diagnostics
			if s.lock, diags = lockfile.Parse(pinned, "benchgraph.lock.hcl"); diags.HasErrors() {
				t.Fatal(diags)
			}
			got := changed(before, s.keys(e.in(t, text)), a.InKey)
			kind, _, _ := strings.Cut(a.Block, ".")
			own := slices.ContainsFunc(got, func(k string) bool { return slices.Contains(made[kind], k) })
			costs := slices.ContainsFunc(got, func(k string) bool { return !reads(k) })
			switch {
			case a.InKey && !own:
				t.Errorf("it is in the key, but only keys of %q changed", got)
			case !a.InKey && costs:
				t.Errorf("it is not in the key, but keys of %q changed", got)
			}
			if strings.HasPrefix(a.Block, "benchmark.metrics") && !slices.Contains(got, "compare") {
				t.Errorf("what is read from the output has changed, but no compare: %q", got)
			}
		})
	}
	for name := range edits {
		if !slices.ContainsFunc(hclspec.Attributes(), func(a hclspec.AttributeInfo) bool {
			return a.Block+"."+a.Attribute == name
		}) {
			t.Errorf("the language has no %s", name)
		}
	}
}

// blocksOf takes a file apart into its top-level blocks.
func blocksOf(text string) []string {
	var blocks []string
	depth, begin := 0, 0
	for i, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		case '\n':
			if block := strings.TrimSpace(text[begin:i]); depth == 0 && block != "" {
				blocks = append(blocks, block)
				begin = i
			}
		}
	}
	return blocks
}

func TestCosmeticEditsChangeNoKey(t *testing.T) {
	t.Parallel()
	s, text := wholeProject(t)
	before := s.keys(text)
	blocks := blocksOf(text)
	if len(blocks) < 25 {
		t.Fatalf("only %d blocks", len(blocks))
	}
	backwards := slices.Clone(blocks)
	slices.Reverse(backwards)
	row := edit{
		"commit \"c\" {\n  repo   = repo.r\n  rev    = \"main\"\n  parent = \"main~1\"\n  title  = \"a commit\"\n  " +
			"params = { used = \"yes\", unused = \"one\" }",
		"locals { rows = csvdecode(file(\"rows.csv\")) }\ncommit \"rows\" {\n  for_each = { for row in local.rows : " +
			"row.commit => row }\n" +
			"  repo = repo.r\n  rev = each.value.rev\n  parent = each.value.parent\n  title = each.value.title\n  " +
			"params = { used = each.value.used, unused = \"one\" }",
	}
	s.write("rows.csv", "commit,rev,parent,title,used\nc,main,main~1,a commit,yes\n")
	tests := []struct {
		name string
		text string
		more string
	}{
		{name: "comments", text: "# one\n" + strings.ReplaceAll(text, "\n  for_each",
			" // two\n  /* three */ for_each")},
		{name: "the order of blocks", text: strings.Join(backwards, "\n")},
		{name: "layout", text: strings.ReplaceAll(strings.ReplaceAll(text, "  ", "\t\t"), " = ", "   =   ")},
		{name: "a local has another name", text: strings.ReplaceAll(strings.ReplaceAll(text, "greeting", "salute"),
			"salute =", "salute=")},
		{name: "blocks are in another file", text: strings.Join(blocks[:len(blocks)/2], "\n"),
			more: strings.Join(blocks[len(blocks)/2:], "\n")},
		{name: "commits come from a table", text: row.in(t, text)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.t = t
			s.write("more/one.hcl", tt.more)
			after := s.keys(tt.text)
			if got := changed(before, after, true); len(got) > 0 || len(after) != len(before) {
				t.Errorf("keys of %q changed; %d nodes, before %d", got, len(after), len(before))
			}
		})
	}
}

func TestANameIsNoPartOfAKey(t *testing.T) {
	t.Parallel()
	s, text := wholeProject(t)
	before := s.keys(text)
	after := s.keys(strings.NewReplacer(`wheel "w"`, `wheel "renamed"`, "wheel.w", "wheel.renamed").Replace(text))
	renamed := map[string]string{}
	for address, key := range after {
		renamed[strings.Replace(address, ".renamed", ".w", 1)] = key
	}
	if got := changed(before, renamed, true); len(got) > 0 {
		t.Errorf("keys of %q changed", got)
	}
}

func TestFilesOfAFixAreInTheKey(t *testing.T) {
	t.Parallel()
	s, text := wholeProject(t)
	before := s.keys(text)
	s.write("files/one", "another content")
	if got := changed(before, s.keys(text), false); !slices.Contains(got, "trial") || !slices.Contains(got, "build") {
		t.Errorf("keys of %q changed", got)
	}
}
