// Package detach ends an apply whose jobs go on without it.
package detach

import (
	"fmt"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// Submitted is the name of a datum: a Note with it tells that a job is in the queue.
const Submitted = "submitted"

// Detached is the error of an apply that ends while its jobs go on.
type Detached struct{ Jobs int }

func (d *Detached) Error() string {
	jobs, them := "1 job goes on", "it"
	if d.Jobs > 1 {
		jobs, them = fmt.Sprintf("%d jobs go on", d.Jobs), "them"
	}
	return fmt.Sprintf("%s without this apply; benchgraph apply follows %s, and runs what comes after", jobs, them)
}

// Detacher passes on the events of an apply, and calls Detach once when only submitted jobs have run for a while. From
// then on, it does not pass on that the nodes of these jobs are interrupted.
type Detacher struct {
	Next interface {
		Event(engine.Event)
		Close()
	}
	Detach func(*Detached)

	mu       sync.Mutex
	running  map[string]bool // by address: whether it is a submitted job; also between two tries
	timer    *time.Timer
	detached bool
}

// settled is how long only jobs must have run. A node that becomes ready starts at once.
const settled = 2 * time.Second

// Event handles one event.
func (d *Detacher) Event(e engine.Event) {
	if d.take(e) {
		d.Next.Event(e)
	}
}

// take notes an event, and reports whether it is passed on.
func (d *Detacher) take(e engine.Event) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		d.running = map[string]bool{}
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	switch e.Type {
	case engine.NodeStart:
		d.running[e.Address] = false
	case engine.Note:
		if _, ok := d.running[e.Address]; ok && e.Data[Submitted] == true {
			d.running[e.Address] = true
		}
	case engine.NodeDone, engine.NodeFailed:
		if delete(d.running, e.Address); e.Retrying {
			d.running[e.Address] = false
		}
	}
	if d.onlyJobs() {
		d.timer = time.AfterFunc(settled, d.detach)
	}
	return !d.detached || e.Reason != failure.Interrupted
}

// onlyJobs reports whether jobs run, and nothing else.
func (d *Detacher) onlyJobs() bool {
	for _, job := range d.running {
		if !job {
			return false
		}
	}
	return len(d.running) > 0 && !d.detached
}

func (d *Detacher) detach() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.onlyJobs() {
		d.detached = true
		d.Detach(&Detached{Jobs: len(d.running)})
	}
}

// Close closes the next watcher.
func (d *Detacher) Close() { d.Next.Close() }
