package results

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

// OtherClasses returns the classes of other machines for which the store has blocks of the project's benchmarks, under
// any key; the class with the most blocks comes first. From a shared store, it brings the first block of each group
// here, since the index does not tell the class.
func OtherClasses(ctx context.Context, f *tasks.Facts) ([]*tasks.Class, error) {
	ours, firstBlocks := map[string]bool{}, map[string]bool{}
	for i := range f.Spec.Benchmarks {
		b := &f.Spec.Benchmarks[i]
		ours["trial."+b.Address.Name] = true
		for _, group := range []string{tasks.CommitOf(b.Candidate), b.Address.Key} {
			firstBlocks[hclspec.TrialAddress(b.Address.Name, group, 1).String()] = true
		}
	}
	if store, ok := f.Store.(bringer); ok {
		store.BringOf(ctx, func(address string) bool { return firstBlocks[address] })
	}
	found, count := map[string]*tasks.Class{}, map[*tasks.Class]int{}
	isOurs := func(address string) bool {
		block, _, _ := strings.Cut(address, "[")
		return ours[block]
	}
	err := f.Store.List(ctx, isOurs, func(m cache.Meta) error {
		at, err := hclspec.ParseAddress(m.Address)
		if err != nil {
			return nil
		}
		c := tasks.ClassIn(at, m.Text)
		if c == nil || f.IsOurs(at, c) {
			return nil
		}
		// Classes of the same text are one. Others are joined only when all blocks are read, since a group may have
		// blocks of several kinds of devices.
		if known := found[c.String()]; known != nil {
			maps.Copy(known.GPUs, c.GPUs)
			c = known
		}
		found[c.String()] = c
		count[c]++
		return nil
	})
	var classes []*tasks.Class
	for _, c := range slices.SortedFunc(maps.Values(found), func(a, b *tasks.Class) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a.String(), b.String()))
	}) {
		if !slices.ContainsFunc(classes, func(larger *tasks.Class) bool { return join(larger, c) }) {
			classes = append(classes, c)
		}
	}
	return classes, err
}

// join adds to c what other says of other groups, and reports whether both can be classes of the same machine.
func join(c, other *tasks.Class) bool {
	if c.Hardware != other.Hardware {
		return false
	}
	for request, kinds := range other.GPUs {
		if own, known := c.GPUs[request]; known && !slices.Equal(own, kinds) {
			return false
		}
	}
	maps.Copy(c.GPUs, other.GPUs)
	return true
}
