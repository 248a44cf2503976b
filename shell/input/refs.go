// Package input gives a node the results of other nodes: the references in texts, their labels in keys, and their paths
// for commands.
package input

import (
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Refs lists the nodes that a task needs, in the order of its inputs: the nodes to which its commands and other texts
// refer. A reference is a label in a key, and a path for a command.
type Refs []hclspec.Address

// Add appends the addresses that are not in the list yet, without zero addresses.
func (r *Refs) Add(addresses ...hclspec.Address) {
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

// fewRefs is the greatest number of addresses that Add looks for one by one.
const fewRefs = 32

// addMany is Add for nodes with thousands of dependencies.
func (r *Refs) addMany(addresses []hclspec.Address) {
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

// AddText appends the references of texts.
func (r *Refs) AddText(texts ...hclspec.Text) {
	for _, t := range texts {
		r.Add(t.Refs()...)
	}
}

// AddCommand appends the references of a command.
func (r *Refs) AddCommand(c hclspec.Command) {
	r.AddText(c.Shell)
	r.AddText(c.Argv...)
}

// AddEnv appends the references of variables.
func (r *Refs) AddEnv(env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		r.AddText(env[name])
	}
}

// Label returns the text of a reference in keys: the number of the input, not its address.
func (r Refs) Label(a hclspec.Address) string {
	return fmt.Sprintf("${input %d}", slices.Index(r, a))
}

// Input returns the result behind a reference.
func (r Refs) Input(env *engine.Env, a hclspec.Address) engine.Input {
	return env.Inputs[slices.Index(r, a)]
}

// Paths returns a function from references to paths: the file of a download, else the directory.
func (r Refs) Paths(env *engine.Env) func(hclspec.Address) string {
	return func(a hclspec.Address) string {
		in := r.Input(env, a)
		if a.Kind == "fetch" {
			return workdir.OnlyFile(in.Entry)
		}
		return in.Dir
	}
}

// DescribeCommand adds a command to a key.
func (r Refs) DescribeCommand(d *cache.Description, label string, c hclspec.Command) {
	switch {
	case c.Shell != nil:
		d.Add(label, "sh", c.Shell.Expand(r.Label))
	case c.Argv != nil:
		words := []string{"argv"}
		for _, w := range c.Argv {
			words = append(words, w.Expand(r.Label))
		}
		d.Add(label, words...)
	}
}

// DescribeEnv adds variables to a key.
func (r Refs) DescribeEnv(d *cache.Description, env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		d.Add("env", name, env[name].Expand(r.Label))
	}
}

// DescribeData adds the data of a working directory to a key.
func (r Refs) DescribeData(d *cache.Description, data []hclspec.Data) {
	for _, item := range data {
		d.Add("data", item.Label(), r.Label(item.Ref))
	}
}

// DescribeImage adds the image and the network access of commands to a key. A place on the host adds nothing.
func (r Refs) DescribeImage(d *cache.Description, image hclspec.Address, network bool) {
	if image != (hclspec.Address{}) {
		d.Add("image", r.Label(image))
	}
	if network {
		d.Add("network")
	}
}
