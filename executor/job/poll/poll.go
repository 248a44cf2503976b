// Package poll has one reading of a scheduler's jobs serve all who ask for them or wait for the end of one.
package poll

import (
	"context"
	"sync"
	"time"
)

// Look is one reading of all jobs.
type Look[T any] struct {
	Jobs map[string]T // by the names of Read
	Err  error        // why they could not be read
	done chan struct{}
}

// Poll reads jobs. It is safe for concurrent use.
type Poll[T any] struct {
	read  func() (map[string]T, error)
	every time.Duration

	mu      sync.Mutex
	next    *Look[T]            // that nobody has begun; nil: none is wanted
	looking bool                // a goroutine carries looks out
	waiting map[*waiter[T]]bool // that each poll is handed to
	polling bool                // a goroutine polls for them
	wake    chan struct{}       // has room for one: the set of waiters changed
}

// New returns a Poll that reads jobs by a function. While somebody waits, every is the time between two looks; 0: from
// 1 s to 30 s, a twentieth of the age of the youngest wait.
func New[T any](every time.Duration, read func() (map[string]T, error)) *Poll[T] {
	return &Poll[T]{read: read, every: every, waiting: map[*waiter[T]]bool{}, wake: make(chan struct{}, 1)}
}

// Look reads the jobs. The reading begins after the call; all who call before it begins share it. The error is that of
// the reading, or says why ctx ended.
func (p *Poll[T]) Look(ctx context.Context) (*Look[T], error) {
	p.mu.Lock()
	if p.next == nil {
		p.next = &Look[T]{done: make(chan struct{})}
	}
	l := p.next
	if !p.looking {
		p.looking = true
		go p.carryOut()
	}
	p.mu.Unlock()
	select {
	case <-l.done:
		return l, l.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// carryOut carries out looks, one after another, as long as any are wanted.
func (p *Poll[T]) carryOut() {
	for {
		p.mu.Lock()
		l := p.next
		p.next = nil
		if l == nil {
			p.looking = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		l.Jobs, l.Err = p.read()
		close(l.done)
	}
}

// Each calls a function with each look, also with those that failed, until it says that the wait is over or returns an
// error, or ctx ends. A look that comes while the function runs is replaced by the next one.
func (p *Poll[T]) Each(ctx context.Context, take func(*Look[T]) (over bool, err error)) error {
	w := p.join()
	defer p.leave(w)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case l := <-w.looks:
			if over, err := take(l); over || err != nil {
				return err
			}
		}
	}
}

// Until is Each for a function that finds something out, which it returns with the end of the wait.
func Until[T, E any](ctx context.Context, p *Poll[T],
	judge func(context.Context, *Look[T]) (found E, over bool, err error)) (found E, err error) {
	err = p.Each(ctx, func(l *Look[T]) (over bool, err error) {
		found, over, err = judge(ctx, l)
		return over, err
	})
	return found, err
}

// waiter is one who is handed each look of the shared poll.
type waiter[T any] struct {
	since time.Time
	looks chan *Look[T] // has room for the last one
}

// join begins to hand looks to a new waiter. leave ends it.
func (p *Poll[T]) join() *waiter[T] {
	w := &waiter[T]{time.Now(), make(chan *Look[T], 1)}
	p.mu.Lock()
	p.waiting[w] = true
	if !p.polling {
		p.polling = true
		go p.poll()
	}
	p.mu.Unlock()
	p.changed()
	return w
}

func (p *Poll[T]) leave(w *waiter[T]) {
	p.mu.Lock()
	delete(p.waiting, w)
	p.mu.Unlock()
	p.changed()
}

func (p *Poll[T]) changed() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// poll looks at the jobs for all who wait, as long as there is one.
func (p *Poll[T]) poll() {
	for last := (time.Time{}); ; {
		every, wanted := p.interval()
		if !wanted {
			return
		}
		if rest := time.Until(last.Add(every)); rest > 0 {
			select {
			case <-time.After(rest):
			case <-p.wake: // a new waiter may want to know sooner
				continue
			}
		}
		last = time.Now()
		l, _ := p.Look(context.Background()) // its error is for the waiters
		p.mu.Lock()
		for w := range p.waiting {
			select {
			case <-w.looks: // nobody took the one before
			default:
			}
			w.looks <- l
		}
		p.mu.Unlock()
	}
}

// interval is the time between two looks. Where nobody waits, it ends the poll.
func (p *Poll[T]) interval() (every time.Duration, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.polling = false
		return 0, false
	}
	if p.every > 0 {
		return p.every, true
	}
	youngest := time.Hour
	for w := range p.waiting {
		youngest = min(youngest, time.Since(w.since))
	}
	return min(max(youngest/20, time.Second), 30*time.Second), true
}
