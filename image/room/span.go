package room

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
)

// Spans sets the spans of all nodes that use images, and returns the addresses of each span's images. A span is a set
// of images that some node uses together, with their bases. A node that uses a subset shares the span, since its images
// are then on the disk. An image is made under any span that contains it.
func Spans(nodes []*engine.Node) map[*engine.Span][]string {
	users := map[string][]*engine.Node{} // by the set of images that they use
	var last []*engine.Node              // images of the previous node
	var key string                       // the set of these images
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
		if n.Kind == "image" { // an image that another node uses finds the span of that node
			key := setOf([]*engine.Node{n})
			users[key] = append(users[key], n)
		}
	}
	sets := map[*engine.Span][]string{}
	holding := map[string][]*engine.Span{} // by image
	// Larger sets come first, so that a set finds those that contain it.
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

// Used returns the addresses of the images that a node uses, with their bases and with the node itself if it is an
// image, sorted.
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

// setOf returns the name of a set of images with their bases: the sorted addresses.
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

// holds reports whether a sorted set contains all images.
func holds(set, images []string) bool {
	for _, image := range images {
		if _, in := slices.BinarySearch(set, image); !in {
			return false
		}
	}
	return true
}
