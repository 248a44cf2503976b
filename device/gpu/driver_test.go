package gpu

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// played is a source that notes whether it was closed while nobody asked it.
type played struct {
	given
	closed atomic.Bool
}

func (p *played) close(busy bool) { p.closed.Store(!busy) }

// A look and the holder of a lease may read a device at once. While one of them waits for an answer, the driver is not
// closed, and a closed driver gets no questions.
func TestABusyDriverIsNotClosed(t *testing.T) {
	for _, hangs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var reads atomic.Int32
			hang := make(chan struct{})
			devices := []Device{{UUID: "GPU-0"}, {Index: 1, UUID: "GPU-1"}}
			source := &played{given: func(Device) (Reading, error) {
				if reads.Add(1) == 1 && hangs {
					<-hang
				}
				return Reading{}, nil
			}}
			d := &Driver{answer: answer{Provider: ProviderNVML, devices: devices, source: source}}
			go func() { _, _ = d.Read(devices[0]) }()
			synctest.Wait()
			if _, err := d.Read(devices[0]); err != nil {
				t.Error(err)
			}
			d.Close()
			if source.closed.Load() == hangs {
				t.Errorf("a read hangs: %t, and it was let go of: %t", hangs, hangs)
			}
			if _, err := d.Read(devices[0]); err == nil || errors.Is(err, ErrGone) || reads.Load() != 2 {
				t.Errorf("read after it was closed: %v, %d reads", err, reads.Load())
			}
			close(hang)
		})
	}
}
