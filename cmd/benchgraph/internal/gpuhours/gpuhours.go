// Package gpuhours counts the GPU hours of an apply.
package gpuhours

import (
	"time"

	"github.com/benchgraph/benchgraph/engine"
)

// Meter is a view.Watcher that calls Stop after more than Limit GPU hours. With a limit of 0, it counts nothing.
type Meter struct {
	Limit float64
	Stop  func(used float64)

	used   float64
	leases map[string]lease // by address, of the nodes that run
}

type lease struct {
	devices int
	since   time.Time
}

// Event counts from the lease of a node to its end. A job in the queue of a cluster has no lease yet.
func (m *Meter) Event(e engine.Event) {
	if m.Limit == 0 {
		return
	}
	switch e.Type {
	case engine.LeaseGranted:
		if devices, ok := e.Data["devices"].([]string); ok {
			if m.leases == nil {
				m.leases = map[string]lease{}
			}
			m.leases[e.Address] = lease{len(devices), e.Time}
		}
	case engine.NodeDone, engine.NodeFailed:
		if l, ok := m.leases[e.Address]; ok {
			m.used += e.Time.Sub(l.since).Hours() * float64(l.devices)
			delete(m.leases, e.Address)
		}
	}
	if m.used > m.Limit {
		m.Stop(m.used)
	}
}

// Close does nothing.
func (m *Meter) Close() {}
