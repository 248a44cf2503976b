package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/applylock"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
)

// runDir has the events of applies in files, so that other processes see what runs: status and logs read them.
func (p place) runDir() string { return filepath.Join(p.state, "runs") }

// newRun names an apply: names of later ones sort later, also when the clock was set back in between.
func (p place) newRun(now time.Time) string {
	if last, ok := runlog.Began(p.lastRun()); ok && !now.After(last) {
		now = last.Add(time.Millisecond)
	}
	return runlog.Name(now, os.Getpid())
}

// lastRun is the name of the last apply that ran something; empty: there was none.
func (p place) lastRun() string { return runlog.Newest(p.runDir()) }

// underWay reports the state of the apply that holds the lock. It is the zero Run where no apply runs, or while one
// plans.
func (p place) underWay() runlog.Run {
	owner, held := applylock.Holder(p.applyLock())
	run := p.lastRun()
	if !held || !runlog.Of(run, owner.PID) { // else an apply is planning, and the last run may have been killed
		return runlog.Run{}
	}
	f, err := os.Open(runlog.Path(p.runDir(), run))
	if err != nil {
		return runlog.Run{}
	}
	defer f.Close()
	return runlog.Read(f)
}
