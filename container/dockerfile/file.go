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
	ref      string // what is named there, arguments filled in
	from, to int    // bytes of the Dockerfile that name it
}

// stage is what one FROM begins.
type stage struct {
	name string // lower case; empty: it has none
	base string // the image on which it is built, perhaps by way of other stages; empty: scratch
}

// File is what is known of a Dockerfile without building it.
type File struct {
	text     []byte
	mentions []mention
	stages   []stage
	Outward  string // "line 3: ADD https://..."; the first instruction that has the builder itself fetch something
}

// Images lists the images that a build needs, each once, in the order in which they are named: those of FROM, of --from
// in COPY, ADD and RUN --mount, and the frontend that "# syntax=" asks for. Stages and scratch are none.
func (d *File) Images() (refs []string) {
	for _, m := range d.mentions {
		if !slices.Contains(refs, m.ref) {
			refs = append(refs, m.ref)
		}
	}
	return refs
}

// Base is the image whose layers a stage begins with; empty: it begins with none. The stage goes by its name or number;
// empty: the last one. That there is no such stage is an error.
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

// find is the place of the last stage of a name so far; -1: there is none.
func (d *File) find(name string) int {
	for i, s := range slices.Backward(d.stages) {
		if s.name != "" && s.name == strings.ToLower(name) {
			return i
		}
	}
	return -1
}

// Pinned is the text with other names for the images.
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
