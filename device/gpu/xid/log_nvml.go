//go:build linux && cgo

package xid

import (
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Log reads the critical errors of devices. It is safe for concurrent use; a device that hangs delays no other one.
type Log struct {
	Lib nvml.Interface
	Has func(functions ...string) bool // at least one of them

	mu   sync.Mutex
	sets map[string]*set // by UUID
}

// set holds the errors of a device since its first reading.
type set struct {
	mu     sync.Mutex // held during calls, which may hang
	events nvml.EventSet
}

// most limits the errors per reading: a broken device may report them endlessly.
const most = 16

// Next returns the critical errors of a device since the previous call, as reported by the GPU with the UUID on. Errors
// before the first call are not known. An instance of MIG reports the errors of its GPU: grave errors concern all
// instances, and errors of programs on other instances are harmless here.
func (l *Log) Next(uuid, on string) (codes []uint64) {
	if !l.Has("nvmlEventSetCreate") || !l.Has("nvmlEventSetFree") || !l.Has("nvmlDeviceRegisterEvents") ||
		!l.Has("nvmlEventSetWait_v2") {
		return nil
	}
	s := l.of(uuid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil && !l.open(s, on) {
		return nil
	}
	for range most {
		event, ret := s.events.Wait(0)
		if ret != nvml.SUCCESS {
			break
		}
		codes = append(codes, event.EventData)
	}
	return codes
}

func (l *Log) of(uuid string) *set {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sets == nil {
		l.sets = map[string]*set{}
	}
	if l.sets[uuid] == nil {
		l.sets[uuid] = &set{}
	}
	return l.sets[uuid]
}

func (l *Log) open(s *set, on string) bool {
	h, ret := l.Lib.DeviceGetHandleByUUID(on)
	if ret != nvml.SUCCESS {
		return false
	}
	events, ret := l.Lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return false
	}
	if h.RegisterEvents(nvml.EventTypeXidCriticalError, events) != nvml.SUCCESS {
		events.Free()
		return false
	}
	s.events = events
	return true
}

// Close frees what the library holds. No call of Next may be running.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sets {
		if s.events != nil {
			s.events.Free()
		}
	}
}
