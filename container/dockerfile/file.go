package dockerfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mention is a place in a Dockerfile where an image is named.
type mention struct {
	ref      string // the image, with arguments replaced
	from, to int    // bytes of the Dockerfile with the name
}

// stage is a build stage, which begins with FROM.
type stage struct {
	name string // lower case; empty: no name
	base string // base image, also of a stage that is built on other stages; empty: scratch
}

// File is a parsed Dockerfile.
type File struct {
	text     []byte
	mentions []mention
	stages   []stage
	Outward  string // first instruction by which the builder fetches a file, such as "line 3: ADD https://..."
}

// Images returns the images that a build needs, each once, in the order in which they appear: those of FROM, of
// --from in COPY, ADD and RUN --mount, and the frontend of "# syntax=". Stages and scratch do not count.
func (d *File) Images() (refs []string) {
	for _, m := range d.mentions {
		if !slices.Contains(refs, m.ref) {
			refs = append(refs, m.ref)
		}
	}
	return refs
}

// Base returns the image on which a stage is built; empty: none. The stage is given by name or number; empty means
// the last one. It returns an error if the stage does not exist.
func (d *File) Base(target string) (string, error) {
	if target == "" {
		return d.stages[len(d.stages)-1].base, nil
	}
	at := d.find(target)
	if n, err := strconv.Atoi(target); at < 0 && err == nil && n >= 0 && n < len(d.stages) {
		at = n
	}
	if at >= 0 {
		return d.stages[at].base, nil
	}
	var names []string
	for i, s := range d.stages {
		names = append(names, cmp.Or(s.name, strconv.Itoa(i)))
	}
	return "", fmt.Errorf("there is no stage %q: the target is one of %s", target, strings.Join(names, ", "))
}

// find returns the index of the last stage with a name so far; -1: none.
func (d *File) find(name string) int {
	for i, s := range slices.Backward(d.stages) {
		if s.name != "" && s.name == strings.ToLower(name) {
			return i
		}
	}
	return -1
}

// Pinned returns the Dockerfile with the images' names replaced by pins.
func (d *File) Pinned(pins map[string]string) ([]byte, error) {
	var out []byte
	at := 0
	for _, m := range d.mentions {
		pin, ok := pins[m.ref]
		if !ok {
			return nil, fmt.Errorf("image %s of the Dockerfile is not pinned", m.ref)
		}
		out = append(append(out, d.text[at:m.from]...), pin...)
		at = m.to
	}
	return append(out, d.text[at:]...), nil
}
