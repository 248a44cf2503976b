package runlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/report/document"
)

// A log has attempts that ended well, failed and were tried again, or were cut off with their apply. Lines that are no
// events are skipped.
func TestAttempts(t *testing.T) {
	log := strings.Join([]string{
		`{"type":"node_start","time":"2026-03-04T05:06:08Z","address":"wheel.a","attempt":1,"waited_s":0.5}`,
		`no event`,
		`{"type":"node_start","time":"2026-03-04T05:06:09Z","address":"trial.b","attempt":1,"waited_s":2}`,
		`{"type":"lease","time":"2026-03-04T05:06:09Z","address":"trial.b","attempt":1,"cpus":4,` +
			`"devices":["GPU-1"],"ports":null}`,
		`{"type":"lease","time":"2026-03-04T05:06:09Z","address":"trial.unknown","attempt":1,"cpus":4}`,
		`{"type":"node_failed","time":"2026-03-04T05:06:12Z","address":"trial.b","attempt":1,"duration_s":2,` +
			`"class":"infra","message":"the device is gone","retrying":true}`,
		`{"type":"node_done","time":"2026-03-04T05:06:12Z","address":"wheel.a","attempt":1,"duration_s":3.5}`,
		`{"type":"node_done","time":"2026-03-04T05:06:13Z","address":"wheel.a","attempt":1,"duration_s":3.5}`,
		`{"type":"node_start","time":"2026-03-04T05:06:13Z","address":"trial.followed","attempt":1}`,
		`{"type":"node_start","time":"2026-03-04T05:06:13Z","address":"trial.queued","attempt":1}`,
		`{"type":"node_done","time":"2026-03-04T05:06:13.5Z","address":"trial.followed","attempt":1,"duration_s":20.5}`,
		`{"type":"node_done","time":"2026-03-04T05:06:18Z","address":"trial.queued","duration_s":1.5,"queued_s":3}`,
		`{"type":"node_start","time":"2026-03-04T05:06:14Z","address":"trial.b","attempt":2}`,
		`{"type":"sample","time":"2026-03-04T05:06:20Z","address":"trial.b"}`,
		`{"type":"node_done","time":"2026-`,
	}, "\n")
	at := func(seconds float64) time.Time {
		return time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
	}
	want := []document.Attempt{
		{Run: "r", Address: "wheel.a", Number: 1, Ready: at(7.5), Start: at(8), End: at(11.5),
			State: document.AttemptDone},
		{Run: "r", Address: "trial.b", Number: 1, Ready: at(7), Start: at(9), End: at(11), Devices: []string{"GPU-1"},
			CPUs: 4, State: document.AttemptFailed, Class: "infra", Message: "the device is gone"},
		// the job of an earlier apply had begun before this apply did
		{Run: "r", Address: "trial.followed", Number: 1, Ready: at(-7), Start: at(-7), End: at(13.5),
			State: document.AttemptDone},
		{Run: "r", Address: "trial.queued", Number: 1, Ready: at(13), Start: at(16), End: at(17.5),
			State: document.AttemptDone},
		{Run: "r", Address: "trial.b", Number: 2, Ready: at(14), Start: at(14), End: at(20),
			State: document.AttemptInterrupted},
	}
	if diff := cmp.Diff(want, Attempts("r", []byte(log))); diff != "" {
		t.Error(diff)
	}
}

// Failures of earlier applies alone make no log. When a node starts, they are in the log before its start.
func TestAnApplyInWhichNothingHappensLeavesNoLog(t *testing.T) {
	dir := t.TempDir()
	known := engine.Event{Type: engine.NodeFailed, Address: "trial.known", Failure: &failure.Failure{}}
	for run, events := range map[string][]engine.Event{
		"idle": {{Type: engine.NodeCached, Address: "wheel.a"}, known},
		"busy": {known, {Type: engine.NodeStart, Address: "trial.b", Attempt: 1},
			{Type: engine.NodeFailed, Address: "trial.b", Attempt: 1, Failure: &failure.Failure{}}, known},
	} {
		log, err := Create(dir, run)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			log.Event(e)
		}
		log.Close()
	}
	if diff := cmp.Diff([]string{"busy"}, Runs(dir)); diff != "" {
		t.Fatal(diff)
	}
	f, err := os.Open(Path(dir, "busy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var ended []string
	for _, n := range Read(f).Ended {
		ended = append(ended, n.Address)
	}
	if diff := cmp.Diff([]string{"trial.known", "trial.b", "trial.known"}, ended); diff != "" {
		t.Error(diff)
	}
}

// A wait is known until a node starts: that of a node, and that of all ready nodes.
func TestWaits(t *testing.T) {
	var run Run
	take := func(want map[string]string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			run.Take([]byte(line))
		}
		if diff := cmp.Diff(want, run.Waits); diff != "" {
			t.Error(diff)
		}
	}
	take(nil, `{"type":"diagnostic","address":"wheel.a","reason":"something else"}`)
	take(map[string]string{"": "2 cores", "wheel.a": "another apply makes it"},
		`{"type":"diagnostic","address":"wheel.a","reason":"waiting: another apply makes it"}`,
		`{"type":"diagnostic","reason":"waiting: 2 cores"}`)
	take(map[string]string{"wheel.a": "another apply makes it"},
		`{"type":"node_start","address":"wheel.b","attempt":1}`)
	take(map[string]string{}, `{"type":"node_start","address":"wheel.a","attempt":1}`)
}

// The log of a failed node stays, and that of the block in which the node found the failure.
func TestSweepLeavesLogsOfFailures(t *testing.T) {
	state := t.TempDir()
	j, err := journal.Open(filepath.Join(state, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(j.Record(journal.Attempt{ID: "node", Key: cache.Describe("k").Key(), Failure: &failure.Failure{
		Class: failure.Permanent, Log: "block"}}), j.Close(), os.Mkdir(filepath.Join(state, "logs"), 0o755))
	old := time.Now().Add(-2 * cache.UseGrain)
	for _, name := range []string{"node.log", "node.transcript", "block.log", "other.log", "stored.log"} {
		path := filepath.Join(state, "logs", name)
		err = errors.Join(err, os.WriteFile(path, []byte("text"), 0o644), os.Chtimes(path, old, old))
	}
	if err != nil {
		t.Fatal(err)
	}
	swept, err := Sweep(state, map[string]bool{"stored": true}, cache.GCOptions{})
	if _, there := os.Stat(filepath.Join(state, "logs", "other.log")); swept != (Swept{1, 4}) || err != nil ||
		!os.IsNotExist(there) {
		t.Errorf("%+v, %v, %v", swept, err, there)
	}
}
