package room

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
)

// Spans gives all nodes that use images the spans under which they run, and returns the addresses of each span's
// images. A span is a set of images that something uses together, with those that they are made from. What uses fewer
// of them shares it: once it is held, they are there. An image is made under any span that holds it.
func Spans(nodes []*engine.Node) map[*engine.Span][]string {
	users := map[string][]*engine.Node{} // by the set of images that they use
	var last []*engine.Node              // images that the node before needs, and
	var key string                       // its set
	for _, n := range nodes {
		direct := imagesAmong(n.Needs)
		if n.Kind == "image" || len(direct) == 0 {
			continue
		}
		if !slices.Equal(direct, last) {
			last, key = direct, setOf(direct)
		}
		users[key] = append(users[key], n)
	}
	for _, n := range nodes {
		if n.Kind == "image" { // what something uses finds the span of its users
			key := setOf([]*engine.Node{n})
			users[key] = append(users[key], n)
		}
	}
	sets := map[*engine.Span][]string{}
	holding := map[string][]*engine.Span{} // by image
	// The larger ones first: a set finds those that hold all of it.
	for _, key := range slices.SortedFunc(maps.Keys(users), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "\n"), strings.Count(a, "\n")), cmp.Compare(a, b))
	}) {
		images := strings.Split(key, "\n")
		rarest := slices.MinFunc(images, func(a, b string) int { return len(holding[a]) - len(holding[b]) })
		var span *engine.Span
		if i := slices.IndexFunc(holding[rarest], func(s *engine.Span) bool { return holds(sets[s], images) }); i >= 0 {
			span = holding[rarest][i]
		} else {
			span = &engine.Span{Name: strings.Join(images, ", ")}
			sets[span] = images
			for _, image := range images {
				holding[image] = append(holding[image], span)
			}
		}
		for _, n := range users[key] {
			n.Spans = []*engine.Span{span}
		}
	}
	for _, n := range nodes {
		if n.Kind == "image" {
			n.Spans = holding[n.Address]
		}
	}
	return sets
}

func imagesAmong(nodes []*engine.Node) []*engine.Node {
	var images []*engine.Node
	for _, n := range nodes {
		if n.Kind == "image" {
			images = append(images, n)
		}
	}
	return images
}

// Used are the addresses of the images that a node uses, itself included if it is one, with those that they are made
// from, in order.
func Used(n *engine.Node) []string {
	images := imagesAmong(n.Needs)
	if n.Kind == "image" {
		images = []*engine.Node{n}
	}
	if len(images) == 0 {
		return nil
	}
	return strings.Split(setOf(images), "\n")
}

// setOf names a set of images, with those that they are made from, by their addresses in order.
func setOf(images []*engine.Node) string {
	var names []string
	var add func([]*engine.Node)
	add = func(images []*engine.Node) {
		for _, n := range images {
			if !slices.Contains(names, n.Address) {
				names = append(names, n.Address)
				add(imagesAmong(n.Needs))
			}
		}
	}
	add(images)
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// holds says whether all of the images are in a sorted set.
func holds(set, images []string) bool {
	for _, image := range images {
		if _, in := slices.BinarySearch(set, image); !in {
			return false
		}
	}
	return true
}
