//go:build linux && cgo

package gpu

import (
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/benchgraph/benchgraph/device/gpu/link"
)

// maxNVLinks is the largest number of links of a device.
const maxNVLinks = 18

// connect returns the connections of all pairs of whole devices.
func (s *nvmlSource) connect(whole []found) links {
	all := links{}
	if len(whole) < 2 {
		return all
	}
	byPCI := map[string]string{}
	for i, a := range whole {
		byPCI[a.PCI] = a.UUID
		for _, b := range whole[:i] {
			path := link.Unknown
			if s.has("nvmlDeviceGetTopologyCommonAncestor") {
				if level, ret := a.handle.GetTopologyCommonAncestor(b.handle); ret == nvml.SUCCESS {
					path = pathOf(level)
				}
			}
			all[pair(a.UUID, b.UUID)] = link.Link{PCIe: path}
		}
	}
	if s.has("nvmlDeviceGetNvLinkState") {
		for _, f := range whole {
			all.count(f, byPCI)
		}
	}
	return all
}

// links are the connections of pairs of devices. The entry of a device with itself counts its links to a switch.
type links map[[2]string]link.Link

// count adds the active links of one device. A link to a switch reaches every other device with such a link.
func (l links) count(f found, byPCI map[string]string) {
	toSwitch := 0
	for n := range maxNVLinks {
		state, ret := f.handle.GetNvLinkState(n)
		if ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		remote, ret := f.handle.GetNvLinkRemotePciInfo(n)
		if ret != nvml.SUCCESS {
			continue
		}
		other, known := byPCI[text(remote.BusId[:])]
		if !known {
			toSwitch++
			continue
		}
		if f.UUID < other { // both ends report each link
			link := l[pair(f.UUID, other)]
			link.NVLinks++
			l[pair(f.UUID, other)] = link
		}
	}
	if toSwitch > 0 {
		l.switched(f.UUID, toSwitch)
	}
}

// switched records that a device has n links to a switch. It reaches all other devices at the switch with the smaller
// number of links of the two.
func (l links) switched(uuid string, n int) {
	l[pair(uuid, uuid)] = link.Link{NVLinks: n}
	for key, link := range l {
		if key[0] == key[1] || key[0] != uuid && key[1] != uuid {
			continue
		}
		other := key[0]
		if other == uuid {
			other = key[1]
		}
		if there := l[pair(other, other)].NVLinks; there > 0 {
			link.NVLinks = max(link.NVLinks, min(n, there))
			l[key] = link
		}
	}
}

func text(b []uint8) string {
	name, _, _ := strings.Cut(string(b), "\x00")
	return name
}

func pathOf(level nvml.GpuTopologyLevel) link.Path {
	switch level {
	case nvml.TOPOLOGY_INTERNAL:
		return link.Board
	case nvml.TOPOLOGY_SINGLE:
		return link.Single
	case nvml.TOPOLOGY_MULTIPLE:
		return link.Multiple
	case nvml.TOPOLOGY_HOSTBRIDGE:
		return link.HostBridge
	case nvml.TOPOLOGY_NODE:
		return link.Node
	case nvml.TOPOLOGY_SYSTEM:
		return link.System
	}
	return link.Unknown
}

func pair(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

func (s *nvmlSource) link(a, b Device) link.Link {
	if a.Parent != "" || b.Parent != "" {
		return link.Link{} // MIG instances cannot communicate
	}
	return s.links[pair(a.UUID, b.UUID)]
}
