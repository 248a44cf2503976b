// Package gpuhours counts the GPU hours of an apply.
package gpuhours

import "github.com/benchgraph/benchgraph/engine"

// Meter is a watch.Watcher that calls Stop after more than Limit GPU hours. With a limit of 0, it counts nothing.
type Meter struct {
	Limit float64
	Stop  func(used float64)

	used    float64
	devices map[string]int // number of devices, by address of the running node
}

// Event counts the devices of an attempt for its duration. The duration excludes the time that a job was queued.
func (m *Meter) Event(e engine.Event) {
	if m.Limit == 0 {
		return
	}
	switch e.Type {
	case engine.LeaseGranted:
		if devices, ok := e.Data["devices"].([]string); ok {
			if m.devices == nil {
				m.devices = map[string]int{}
			}
			m.devices[e.Address] = len(devices)
		}
	case engine.NodeDone, engine.NodeFailed:
		m.used += e.Duration.Hours() * float64(m.devices[e.Address])
		delete(m.devices, e.Address)
	}
	if m.used > m.Limit {
		m.Stop(m.used)
	}
}

// Close does nothing.
func (m *Meter) Close() {}
