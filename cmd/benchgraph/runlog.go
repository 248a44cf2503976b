package main

import (
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
)

// runDir has the events of applies in files, so that other processes see what runs: status and logs read them.
func (p place) runDir() string { return filepath.Join(p.state, "runs") }

// newRun names an apply: names of later ones sort later, also when the clock was set back in between.
func (p place) newRun(now time.Time) string { return runlog.Next(p.runDir(), now) }

// lastRun is the name of the last apply that ran something; empty: there was none.
func (p place) lastRun() string { return runlog.Newest(p.runDir()) }

// underWay reports the state of the apply that holds the lock. It is the zero Run where no apply runs, or while one
// plans.
func (p place) underWay() runlog.Run { return runlog.UnderWay(p.runDir(), p.applyLock()) }
