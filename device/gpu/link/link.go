// Package link describes how the GPUs of a machine are connected.
package link

import (
	"cmp"
	"fmt"
)

// Link is the connection of two GPUs.
type Link struct {
	NVLinks int  // number of active NVLinks between them
	PCIe    Path // their connection over PCIe
}

// Path is the distance of two GPUs over PCIe.
type Path int

// Paths, the longest first.
const (
	Unknown    Path = iota
	System          // over the link between processors
	Node            // between host bridges of one NUMA node
	HostBridge      // over a host bridge
	Multiple        // over several PCIe switches
	Single          // over one PCIe switch
	Board           // on one board
)

func (p Path) String() string {
	return [...]string{"?", "SYS", "NODE", "PHB", "PXB", "PIX", "PSB"}[p]
}

// String returns the link as in nvidia-smi's matrix.
func (l Link) String() string {
	if l.NVLinks > 0 {
		return fmt.Sprintf("NV%d", l.NVLinks)
	}
	return l.PCIe.String()
}

// Compare orders links by speed.
func (l Link) Compare(m Link) int {
	return cmp.Or(cmp.Compare(l.NVLinks, m.NVLinks), cmp.Compare(l.PCIe, m.PCIe))
}
