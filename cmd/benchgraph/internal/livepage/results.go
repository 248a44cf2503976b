package livepage

import (
	"context"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/internal/usage"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/report/page"
)

// Results are the stored results as they were read at one time.
type Results struct {
	Document document.Document
	Nodes    map[string]string    // state of each node, by address
	Attempts map[string][]Attempt // by node, the newest last
	LogOf    page.LogOf
}

// Attempt is an attempt at a node. It may have a log.
type Attempt struct {
	Name string
	How  string
}

// restFactor is the ratio of the pause after a reading to the processor time of the reading: reading uses at most a
// tenth of a core, since measurements run on the same machine.
const restFactor = 9

// leastRest is the shortest pause between two readings.
const leastRest = time.Second

// freshWithin is how long a page waits for a running reading.
const freshWithin = 700 * time.Millisecond

// keeper reads results when a client requests them and they may have changed.
type keeper struct {
	read  func(context.Context) (*Results, error)
	stamp func() string
	tell  func(error)
	title string

	wanted chan struct{} // capacity 1: a client requests results

	mu      sync.Mutex
	last    shown
	from    string    // stamp of the last reading
	rested  time.Time // no reading until then
	changed chan struct{}
}

func newKeeper(c Config) (*keeper, error) {
	k := &keeper{read: c.Read, stamp: c.Stamp, tell: c.Tell, title: c.Title}
	k.wanted, k.changed = make(chan struct{}, 1), make(chan struct{})
	var err error
	k.last.page, err = page.RenderLive(nil, k.title, nil)
	return k, err
}

// look requests a reading of the results.
func (k *keeper) look() {
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// shown is the current content of the page.
type shown struct {
	page    page.LivePage
	results *Results // nil: not read yet
	at      time.Time
	took    time.Duration // duration of the last reading
	problem error         // error of the last reading
}

// now returns the last results, and a channel that is closed after the next reading.
func (k *keeper) now() (shown, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, k.changed
}

// keep reads requested results until ctx ends.
func (k *keeper) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wanted:
		}
		k.mu.Lock()
		from := k.from
		k.mu.Unlock()
		stamp := k.stamp()
		if stamp == from {
			continue
		}
		rest := k.renew(ctx, stamp)
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// fresh waits briefly for a reading, so that a newly opened page is not outdated.
func (k *keeper) fresh(done <-chan struct{}) {
	k.look()
	stamp := k.stamp()
	k.mu.Lock()
	changed, current := k.changed, stamp == k.from || time.Now().Before(k.rested)
	k.mu.Unlock()
	if current {
		return
	}
	select {
	case <-changed:
	case <-done:
	case <-time.After(freshWithin):
	}
}

// renew reads the results once and returns the pause after it.
func (k *keeper) renew(ctx context.Context, stamp string) time.Duration {
	begun, used := time.Now(), usage.Processor()
	results, err := k.read(ctx)
	var live page.LivePage
	if err == nil {
		live, err = page.RenderLive(&results.Document, k.title, results.LogOf)
	}
	if ctx.Err() != nil {
		return 0
	}
	rest := max(leastRest, restFactor*(usage.Processor()-used))
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil && (k.last.problem == nil || k.last.problem.Error() != err.Error()) {
		k.tell(err)
	}
	k.from, k.rested = stamp, time.Now().Add(rest)
	k.last.problem, k.last.took = err, time.Since(begun)
	if err == nil {
		k.last.results, k.last.page, k.last.at = results, live, begun
	}
	close(k.changed)
	k.changed = make(chan struct{})
	return rest
}
