package livepage

import (
	"context"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/internal/usage"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/report/page"
)

// Results are what is stored, as it was read at one time.
type Results struct {
	Document document.Document
	Nodes    map[string]string    // how each node stands, by address
	Attempts map[string][]Attempt // at each node, the newest last
	LogOf    page.LogOf
}

// Attempt is one attempt at a node, of which there may be a log.
type Attempt struct {
	Name string
	How  string
}

// restFactor is how many times the processor's time that a reading took nothing is read after it: at most a tenth of
// one core is used, since what is measured runs on the same machine.
const restFactor = 9

// leastRest is the least time between two readings.
const leastRest = time.Second

// freshWithin is how long a page waits for results that are being read.
const freshWithin = 700 * time.Millisecond

// keeper reads results when somebody looks at them and they may have changed.
type keeper struct {
	read  func(context.Context) (*Results, error)
	stamp func() string
	tell  func(error)
	title string

	wanted chan struct{} // one place: somebody looks

	mu      sync.Mutex
	last    shown
	from    string    // the stamp of what was read
	rested  time.Time // until then nothing is read
	changed chan struct{}
}

func newKeeper(c Config) (*keeper, error) {
	k := &keeper{read: c.Read, stamp: c.Stamp, tell: c.Tell, title: c.Title}
	k.wanted, k.changed = make(chan struct{}, 1), make(chan struct{})
	var err error
	k.last.page, err = page.RenderLive(nil, k.title, nil)
	return k, err
}

// look says that somebody wants to see the results.
func (k *keeper) look() {
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// shown is what is shown of results.
type shown struct {
	page    page.LivePage
	results *Results // nil: not read yet
	at      time.Time
	took    time.Duration // by the last reading
	problem error         // of the last reading
}

// now returns the last results, and a channel that is closed when newer ones were read.
func (k *keeper) now() (shown, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, k.changed
}

// keep reads results until ctx ends.
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

// fresh waits briefly for results that are being read, so that a page that is opened late is not an old one.
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

// renew reads once, and says how long to rest after it.
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
