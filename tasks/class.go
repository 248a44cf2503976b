package tasks

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/hclspec"
)

// machineClass is what the keys of trials say of a machine.
type Class struct {
	Hardware string
	GPUs     map[string][]string // by gpuRequest: the kind of its devices that serves the blocks of a group
}

// String is the class for people.
func (c *Class) String() string {
	kinds := map[string]bool{}
	for _, list := range c.GPUs {
		for _, kind := range list {
			kinds[kind] = true
		}
	}
	return strings.Join(append(sortedKeys(kinds), c.Hardware), "; ")
}

// class is that of this machine, or of another one that is looked at as if it were this.
func (p *Facts) HardwareClass() string {
	if p.As != nil {
		return p.As.Hardware
	}
	return p.Hardware
}

// gpuClasses is the kind of devices that serves the blocks of a commit, in a list as keys have it: nothing where no
// kind can. What another kind measures is another result.
func (p *Facts) gpuClasses(trial hclspec.Address, g *hclspec.GPUs) []string {
	if p.As != nil {
		return p.As.GPUs[gpuRequest(trial, g)]
	}
	group, _ := trial.Trial()
	kind, n := p.kindFor(CommitOf(group), device.GPUs{Count: g.Count, Memory: g.Memory, Model: p.model(g.Model)})
	if n == 0 {
		return nil
	}
	return []string{kind}
}

// kindFor chooses one of the kinds of devices that can serve a request, and says how many devices of it there are. All
// blocks of a commit get the same one, in each plan and from each process: each kind draws a number for the commit, and
// the highest counts. So a kind that comes or goes moves no commit between the others. A device that is away, such as
// one that hangs, moves none unless too few of its kind are left; where too few are left of each kind, the draw is as
// if they were there, so that what was measured is still found.
func (p *Facts) kindFor(commit string, want device.GPUs) (chosen string, n int) {
	count := map[string]int{}
	most := 0
	for _, d := range p.Devices() {
		if want.Suits(d) {
			kind := device.KindOf(d)
			count[kind]++
			most = max(most, count[kind])
		}
	}
	var highest [sha256.Size]byte
	for _, kind := range sortedKeys(count) {
		drawn := sha256.Sum256([]byte(commit + "\x00" + kind))
		if count[kind] >= min(want.Count, most) && bytes.Compare(drawn[:], highest[:]) > 0 {
			chosen, n, highest = kind, count[kind], drawn
		}
	}
	return chosen, n
}

// gpuValues are a request as a key says it.
func gpuValues(g *hclspec.GPUs) []string {
	return []string{strconv.Itoa(g.Count), strconv.FormatInt(g.Memory, 10), g.Model}
}

// gpuRequest names what a machineClass knows of: a group of a benchmark, and what its blocks ask for.
func gpuRequest(trial hclspec.Address, g *hclspec.GPUs) string {
	return groupRequest(trial, gpuValues(g))
}

func groupRequest(trial hclspec.Address, values []string) string {
	group, _ := trial.Trial()
	return strings.Join(append([]string{trial.Name, group}, values...), "\x00")
}

// classIn reads the class of the machine back from the key text of a trial; nil when it is none.
func ClassIn(trial hclspec.Address, text string) *Class {
	lines, err := cache.ParseText(text)
	if err != nil {
		return nil
	}
	c := &Class{GPUs: map[string][]string{}}
	request := ""
	for _, l := range lines {
		switch {
		case l.Label == "hardware" && len(l.Values) == 1:
			c.Hardware = l.Values[0]
		case l.Label == "gpus":
			request = groupRequest(trial, l.Values)
		case l.Label == "gpu classes":
			c.GPUs[request] = l.Values
		}
	}
	if c.Hardware == "" {
		return nil
	}
	return c
}

// isOurs says whether what a trial's key says of its machine is true of this one.
func (p *Facts) IsOurs(trial hclspec.Address, c *Class) bool {
	if c.Hardware != p.Hardware {
		return false
	}
	for i := range p.Spec.Benchmarks {
		if g := p.Spec.Benchmarks[i].GPUs; g != nil {
			if kinds, asked := c.GPUs[gpuRequest(trial, g)]; asked && !slices.Equal(kinds, p.gpuClasses(trial, g)) {
				return false
			}
		}
	}
	return true
}
