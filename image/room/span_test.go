package room

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
)

// nodesOf returns nodes from lines "address: dependencies"; the kind is the text before the dot.
func nodesOf(t *testing.T, lines ...string) (all []*engine.Node) {
	byName := map[string]*engine.Node{}
	for _, line := range lines {
		name, needs, _ := strings.Cut(line, ":")
		kind, _, _ := strings.Cut(name, ".")
		n := &engine.Node{Address: name, Kind: kind}
		for _, dep := range strings.Fields(needs) {
			if byName[dep] == nil {
				t.Fatal(dep)
			}
			n.Needs = append(n.Needs, byName[dep])
		}
		byName[name] = n
		all = append(all, n)
	}
	return all
}

// spansText returns the spans of each node as text.
func spansText(nodes []*engine.Node) map[string]string {
	text := map[string]string{}
	for _, n := range nodes {
		var names []string
		for _, s := range n.Spans {
			names = append(names, s.Name)
		}
		slices.Sort(names)
		if len(names) > 0 {
			text[n.Address] = strings.Join(names, " | ")
		}
	}
	return text
}

func TestSpansAreTheImagesUsedTogether(t *testing.T) {
	nodes := nodesOf(t,
		"wheel.w:",
		"image.base:",
		"image.a: image.base wheel.w",
		"image.b: image.base",
		"image.c: image.base",
		"image.alone: wheel.w",
		"image.tools:",
		"trial.1: image.a image.b",
		"trial.2: image.b trial.1 image.a",
		"trial.3: image.c",
		"task.smaller: image.b",
		"task.tool: image.tools wheel.w",
		"task.plain: wheel.w",
		"compare.all: trial.1 trial.2",
	)
	sets := Spans(nodes)
	want := map[string]string{
		"image.base":   "image.a, image.b, image.base | image.base, image.c",
		"image.a":      "image.a, image.b, image.base",
		"image.b":      "image.a, image.b, image.base",
		"trial.1":      "image.a, image.b, image.base",
		"trial.2":      "image.a, image.b, image.base",
		"task.smaller": "image.a, image.b, image.base",
		"image.c":      "image.base, image.c",
		"trial.3":      "image.base, image.c",
		"image.alone":  "image.alone",
		"image.tools":  "image.tools",
		"task.tool":    "image.tools",
	}
	if got := spansText(nodes); !maps.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", lines(got), lines(want))
	}
	if len(sets) != 4 {
		t.Errorf("%d spans", len(sets))
	}
	for s, images := range sets {
		if s.Name != strings.Join(images, ", ") {
			t.Errorf("%s holds %v", s.Name, images)
		}
	}
}

func lines(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s: %s\n", k, m[k])
	}
	return b.String()
}

// BenchmarkSpansOf has 1,000 commits, each with two images on a base that all share, and seven blocks.
func BenchmarkSpansOf(b *testing.B) {
	base := &engine.Node{Address: "image.base", Kind: "image"}
	nodes := []*engine.Node{base}
	for i := range 1000 {
		var images []*engine.Node
		for j := range 2 {
			images = append(images, &engine.Node{Address: fmt.Sprintf("image.vllm[%d/%d]", i, j), Kind: "image",
				Needs: []*engine.Node{base}})
		}
		nodes = append(nodes, images...)
		for j := range 7 {
			nodes = append(nodes, &engine.Node{Address: fmt.Sprintf("trial.serve[%d/%d]", i, j), Kind: "trial",
				Needs: images})
		}
	}
	for b.Loop() {
		if len(Spans(nodes)) != 1000 {
			b.Fatal("wrong")
		}
	}
}
