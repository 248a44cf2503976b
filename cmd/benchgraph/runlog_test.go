package main

import (
	"os"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/applylock"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
)

// An apply that still plans runs nothing, whatever the log of a killed one has.
func TestNothingRunsBeforeAnApplyHasALog(t *testing.T) {
	p := place{state: t.TempDir()}
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	lock, err := applylock.Acquire(p.applyLock(), applylock.Owner{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	start := func(pid int) {
		t.Helper()
		if err := os.MkdirAll(p.runDir(), 0o755); err != nil {
			t.Fatal(err)
		}
		began = began.Add(time.Second)
		text := []byte(`{"type":"node_start","address":"task.a","attempt":1}` + "\n")
		if err := os.WriteFile(runlog.Path(p.runDir(), runlog.Name(began, pid)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	start(os.Getpid() + 1)
	if nodes := p.underWay().Running; len(nodes) > 0 {
		t.Errorf("%+v", nodes)
	}
	start(os.Getpid())
	if nodes := p.underWay().Running; len(nodes) != 1 || nodes[0].Address != "task.a" {
		t.Errorf("%+v", nodes)
	}
}
