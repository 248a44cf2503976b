package tasks

import (
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// refs are the nodes that a task needs, in the order of its inputs.
type refs []hclspec.Address

// add appends the addresses that are not there yet. The zero Address is none.
func (r *refs) add(addresses ...hclspec.Address) {
	if len(addresses) > fewRefs {
		r.addMany(addresses)
		return
	}
	for _, a := range addresses {
		if a != (hclspec.Address{}) && !slices.Contains(*r, a) {
			*r = append(*r, a)
		}
	}
}

// fewRefs is how many addresses are looked for one by one.
const fewRefs = 32

// addMany is add for a node that needs thousands of others.
func (r *refs) addMany(addresses []hclspec.Address) {
	there := make(map[hclspec.Address]bool, len(*r)+len(addresses))
	for _, a := range *r {
		there[a] = true
	}
	for _, a := range addresses {
		if a != (hclspec.Address{}) && !there[a] {
			there[a] = true
			*r = append(*r, a)
		}
	}
}

// addText appends what a text refers to.
func (r *refs) addText(texts ...hclspec.Text) {
	for _, t := range texts {
		r.add(t.Refs()...)
	}
}

func (r *refs) addCommand(c hclspec.Command) {
	r.addText(c.Shell)
	r.addText(c.Argv...)
}

func (r *refs) addEnv(env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		r.addText(env[name])
	}
}

// label stands for a reference in a key: which input it is, not what it is called.
func (r refs) label(a hclspec.Address) string {
	return fmt.Sprintf("${input %d}", slices.Index(r, a))
}

// input finds the result behind a reference.
func (r refs) input(env *engine.Env, a hclspec.Address) engine.Input {
	return env.Inputs[slices.Index(r, a)]
}

// paths gives references the paths of what they refer to: the file itself for a download, else the directory.
func (r refs) paths(env *engine.Env) func(hclspec.Address) string {
	return func(a hclspec.Address) string {
		in := r.input(env, a)
		if a.Kind == "fetch" {
			return onlyFile(in.Entry)
		}
		return in.Dir
	}
}

// describeCommand writes a command into a key.
func (r refs) describeCommand(d *cache.Description, label string, c hclspec.Command) {
	switch {
	case c.Shell != nil:
		d.Add(label, "sh", c.Shell.Expand(r.label))
	case c.Argv != nil:
		words := []string{"argv"}
		for _, w := range c.Argv {
			words = append(words, w.Expand(r.label))
		}
		d.Add(label, words...)
	}
}

func (r refs) describeEnv(d *cache.Description, env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		d.Add("env", name, env[name].Expand(r.label))
	}
}

func (r refs) describeData(d *cache.Description, data []hclspec.Data) {
	for _, item := range data {
		d.Add("data", item.Name, r.label(item.Ref))
	}
}

// describeImage writes in what commands run into a key. On the host, nothing needs to be said.
func (r refs) describeImage(d *cache.Description, image hclspec.Address, network bool) {
	if image != (hclspec.Address{}) {
		d.Add("image", r.label(image))
	}
	if network {
		d.Add("network")
	}
}
