package main

import (
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
)

// runDir is the directory with the events of applies, from which other processes see what runs: status and logs read
// them.
func (p place) runDir() string { return filepath.Join(p.state, "runs") }

// newRun returns a name for an apply. Names of later applies sort later, even if the clock was set back in between.
func (p place) newRun(now time.Time) string { return runlog.Next(p.runDir(), now) }

// lastRun returns the name of the last apply that ran something; "" if there was none.
func (p place) lastRun() string { return runlog.Newest(p.runDir()) }

// underWay returns the state of the apply that holds the lock. It is the zero Run if no apply runs, or while one plans.
func (p place) underWay() runlog.Run { return runlog.UnderWay(p.runDir(), p.applyLock()) }
