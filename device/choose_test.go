package device

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/device/gpu/link"
)

// matrix reads links as nvidia-smi writes them: the lower half.
func matrix(t *testing.T, text string) ([]gpu.Device, func(a, b gpu.Device) link.Link) {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		rows = append(rows, strings.Fields(line))
	}
	kinds := map[string]link.Link{"NV2": {NVLinks: 2, PCIe: link.System}, "NV4": {NVLinks: 4, PCIe: link.System},
		"PIX": {PCIe: link.Single}, "PXB": {PCIe: link.Multiple}, "NODE": {PCIe: link.Node},
		"SYS": {PCIe: link.System}}
	all := gputest.Devices(len(rows)+1, "NVIDIA V100", 16<<30)
	return all, func(a, b gpu.Device) link.Link {
		l, ok := kinds[rows[max(a.Index, b.Index)-1][min(a.Index, b.Index)]]
		if !ok {
			t.Errorf("no such link between %d and %d", a.Index, b.Index)
		}
		return l
	}
}

func indices(list []gpu.Device) (all []int) {
	for _, d := range list {
		all = append(all, d.Index)
	}
	return all
}

// Half of a machine with two processors, each with two pairs of devices behind a switch.
const eight = `
PIX
NODE NODE
NODE NODE PIX
SYS SYS SYS SYS
SYS SYS SYS SYS PIX
SYS SYS SYS SYS NODE NODE
SYS SYS SYS SYS NODE NODE PIX
`

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		name  string
		links string
		free  []int
		n     int
		want  []int
	}{
		{"a pair behind one switch", eight, []int{0, 2, 3, 5}, 2, []int{2, 3}},
		{"four on one processor", eight, []int{0, 1, 3, 4, 5, 6, 7}, 4, []int{4, 5, 6, 7}},
		{"one that tears no pair apart", eight, []int{0, 1, 3, 4, 5}, 1, []int{3}},
		{"one of a whole machine", eight, []int{0, 1, 2, 3, 4, 5, 6, 7}, 1, []int{0}},
		{"all that are left", eight, []int{1, 6}, 2, []int{1, 6}},
		{"direct links before the same processor", "NV2\nNODE NV4\nPIX NODE NODE\n", []int{0, 1, 2, 3}, 2, []int{1, 2}},
		{"no slow link in the middle", "NV4\nNV4 SYS\nNV2 NV2 NV2\n", []int{0, 1, 2, 3}, 3, []int{0, 1, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all, links := matrix(t, test.links)
			var free []gpu.Device
			for _, i := range test.free {
				free = append(free, all[i])
			}
			if got := indices(choose(free, test.n, links)); !slices.Equal(got, test.want) {
				t.Errorf("%v", got)
			}
			if got := indices(choose(free, test.n, nil)); !slices.Equal(got, test.free[:test.n]) {
				t.Errorf("without knowing the links: %v", got)
			}
		})
	}
}

func BenchmarkChoose8Of16(b *testing.B) {
	all := gputest.Devices(16, "NVIDIA H100", 80<<30)
	links := func(a, b gpu.Device) link.Link { return link.Link{PCIe: link.Path(1 + (a.Index/4+b.Index/4)%6)} }
	for b.Loop() {
		choose(all, 8, links)
	}
}
