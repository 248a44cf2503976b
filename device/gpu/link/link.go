// Package link says how GPUs of a machine are connected.
package link

import (
	"cmp"
	"fmt"
)

// Link is how two GPUs are connected, the closer the greater.
type Link struct {
	NVLinks int  // that are up between them
	PCIe    Path // the way that is there in any case
}

// Path is how far two GPUs are apart on the machine.
type Path int

// From far to near.
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

// String is what nvidia-smi's matrix would show.
func (l Link) String() string {
	if l.NVLinks > 0 {
		return fmt.Sprintf("NV%d", l.NVLinks)
	}
	return l.PCIe.String()
}

// Compare orders links by how fast they are.
func (l Link) Compare(m Link) int {
	return cmp.Or(cmp.Compare(l.NVLinks, m.NVLinks), cmp.Compare(l.PCIe, m.PCIe))
}
