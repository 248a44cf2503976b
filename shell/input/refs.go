// Package input has the results that a node gets of others: what texts refer to, what stands in a key for that, and
// where commands find it.
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

// Refs are the nodes that a task needs, in the order of its inputs: what its commands and other texts refer to. In a
// key, a reference is a label; for a command, a path.
type Refs []hclspec.Address

// Add appends the addresses that are not there yet. The zero Address is none.
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

// fewRefs is how many addresses are looked for one by one.
const fewRefs = 32

// addMany is Add for a node that needs thousands of others.
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

// AddText appends what a text refers to.
func (r *Refs) AddText(texts ...hclspec.Text) {
	for _, t := range texts {
		r.Add(t.Refs()...)
	}
}

// AddCommand appends what a command refers to.
func (r *Refs) AddCommand(c hclspec.Command) {
	r.AddText(c.Shell)
	r.AddText(c.Argv...)
}

// AddEnv appends what the values of variables refer to.
func (r *Refs) AddEnv(env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		r.AddText(env[name])
	}
}

// Label stands for a reference in a key: which input it is, not what it is called.
func (r Refs) Label(a hclspec.Address) string {
	return fmt.Sprintf("${input %d}", slices.Index(r, a))
}

// Input finds the result behind a reference.
func (r Refs) Input(env *engine.Env, a hclspec.Address) engine.Input {
	return env.Inputs[slices.Index(r, a)]
}

// Paths gives references the paths of what they refer to: the file itself for a download, else the directory.
func (r Refs) Paths(env *engine.Env) func(hclspec.Address) string {
	return func(a hclspec.Address) string {
		in := r.Input(env, a)
		if a.Kind == "fetch" {
			return workdir.OnlyFile(in.Entry)
		}
		return in.Dir
	}
}

// DescribeCommand writes a command into a key.
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

// DescribeEnv writes variables into a key.
func (r Refs) DescribeEnv(d *cache.Description, env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		d.Add("env", name, env[name].Expand(r.Label))
	}
}

// DescribeData writes what is laid into a working directory into a key.
func (r Refs) DescribeData(d *cache.Description, data []hclspec.Data) {
	for _, item := range data {
		d.Add("data", item.Label(), r.Label(item.Ref))
	}
}

// DescribeImage writes in what commands run into a key. On the host, nothing needs to be said.
func (r Refs) DescribeImage(d *cache.Description, image hclspec.Address, network bool) {
	if image != (hclspec.Address{}) {
		d.Add("image", r.Label(image))
	}
	if network {
		d.Add("network")
	}
}
