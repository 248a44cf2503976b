package watch

import (
	"context"
	"sync"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/process"
)

// State is a device as it is now, or the error of reading it.
type State struct {
	gpu.Device
	gpu.Reading
	Err error
}

// States reads all devices side by side: one that hangs delays no other. It ends with ctx.
func States(ctx context.Context, d *gpu.Driver) ([]State, error) {
	all := make([]State, len(d.Devices()))
	var asked sync.WaitGroup
	for i, dev := range d.Devices() {
		asked.Go(func() {
			r, err := d.Read(dev)
			if r.Processes == nil {
				r.Processes = []process.Process{}
			}
			if err == nil {
				dev.Used = r.Used
			}
			if r.PowerLimit != nil {
				dev.PowerLimit = *r.PowerLimit
			}
			all[i] = State{dev, r, err}
		})
	}
	read := make(chan struct{})
	go func() {
		asked.Wait()
		close(read)
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-read:
		return all, nil
	}
}
