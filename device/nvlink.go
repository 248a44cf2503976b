//go:build linux && cgo

package device

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// maxNVLinks is how many links a device has at most.
const maxNVLinks = 18

// connect finds out how each two whole devices are connected.
func (s *nvmlSource) connect(all []Device, handles []nvml.Device) {
	byPCI := map[string]string{}
	whole := all[:0:0]
	for _, d := range all {
		if d.Parent == "" {
			byPCI[d.PCI] = d.UUID
			whole = append(whole, d)
		}
	}
	if len(whole) < 2 {
		return
	}
	for i, h := range handles {
		for j := range handles[:i] {
			path := PathUnknown
			if level, ret := h.GetTopologyCommonAncestor(handles[j]); ret == nvml.SUCCESS {
				path = pathOf(level)
			}
			s.links[pair(whole[i].UUID, whole[j].UUID)] = Link{PCIe: path}
		}
	}
	for i, h := range handles {
		s.countNVLinks(h, whole[i], byPCI)
	}
}

// countNVLinks adds the links that are up from one device. Those to a switch lead to every device that has some, too.
func (s *nvmlSource) countNVLinks(h nvml.Device, d Device, byPCI map[string]string) {
	if !s.has("nvmlDeviceGetNvLinkState") {
		return
	}
	toSwitch := 0
	for n := range maxNVLinks {
		state, ret := h.GetNvLinkState(n)
		if ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		remote, ret := h.GetNvLinkRemotePciInfo(n)
		if ret != nvml.SUCCESS {
			continue
		}
		other, known := byPCI[text(remote.BusId[:])]
		if !known {
			toSwitch++
			continue
		}
		if d.UUID < other { // each link is seen from both of its ends
			l := s.links[pair(d.UUID, other)]
			l.NVLinks++
			s.links[pair(d.UUID, other)] = l
		}
	}
	if toSwitch > 0 {
		s.switched(d.UUID, toSwitch)
	}
}

// switched notes that a device has n links to a switch: it reaches all others that have some, with the fewer of the two.
func (s *nvmlSource) switched(uuid string, n int) {
	self := pair(uuid, uuid)
	s.links[self] = Link{NVLinks: n}
	for key, l := range s.links {
		if key[0] == key[1] || key[0] != uuid && key[1] != uuid {
			continue
		}
		other := key[0]
		if other == uuid {
			other = key[1]
		}
		if there := s.links[pair(other, other)].NVLinks; there > 0 {
			l.NVLinks = max(l.NVLinks, min(n, there))
			s.links[key] = l
		}
	}
}

func pathOf(level nvml.GpuTopologyLevel) Path {
	switch level {
	case nvml.TOPOLOGY_INTERNAL:
		return PathBoard
	case nvml.TOPOLOGY_SINGLE:
		return PathSingle
	case nvml.TOPOLOGY_MULTIPLE:
		return PathMultiple
	case nvml.TOPOLOGY_HOSTBRIDGE:
		return PathHostBridge
	case nvml.TOPOLOGY_NODE:
		return PathNode
	case nvml.TOPOLOGY_SYSTEM:
		return PathSystem
	}
	return PathUnknown
}

func pair(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

func (s *nvmlSource) link(a, b Device) Link {
	if a.Parent != "" || b.Parent != "" {
		return Link{} // instances of MIG do not speak to each other
	}
	return s.links[pair(a.UUID, b.UUID)]
}
