package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/benchgraph/benchgraph/device/gpu/clocks"
	"github.com/benchgraph/benchgraph/device/hostlock"
	"github.com/benchgraph/benchgraph/executor/family"
)

// Locked clocks of devices are reset in every case: by the process that locked them; if that is killed, by a guard
// process that waits for its end; and if both are killed, by the next apply.

// guardCommand is the first argument of the guard process. It is not a command for users: a record and the path of the
// NVML library follow.
const guardCommand = "guard-clocks"

// clockRecords is the directory with records of the clocks that are locked.
func (p place) clockRecords() string { return filepath.Join(p.state, "clocks") }

// newClocks returns the locker of clocks.
func (s *session) newClocks() *clocks.Locker {
	library := s.driverOptions().Library
	return &clocks.Locker{Driver: s.gpus, Records: s.clockRecords(),
		Guard: func(record string, locks []*os.File) (func() error, error) {
			record, err := filepath.Abs(record)
			if err != nil {
				return nil, err
			}
			// The name of this program may lead to another program by now.
			return family.StartApart("/proc/self/exe", []string{os.Args[0], guardCommand, record, library}, locks)
		}}
}

// guardClocks is the main function of the guard process.
func guardClocks(record, library string, alive io.Reader) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if clocks.Guard(context.Background(), alive, record, library) != nil {
		return 1 // the record stays for the next apply
	}
	return 0
}

// resetClocks resets clocks that killed applies have left locked.
func (s *session) resetClocks() {
	lease := func(uuid string) (release func(), err error) {
		return hostlock.Lease(uuid, s.hostLock(), s.sharedLocks())
	}
	for _, err := range clocks.ResetLeft(s.gpus, s.clockRecords(), lease) {
		s.note("Warning: %v", err)
	}
}
