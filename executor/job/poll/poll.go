// Package poll shares one reading of a scheduler's jobs among all callers that need them or wait for the end of one.
package poll

import (
	"context"
	"sync"
	"time"
)

// Look is one reading of all jobs.
type Look[T any] struct {
	Jobs map[string]T // by the names that read gives them
	Err  error        // why they could not be read
	done chan struct{}
}

// Poll reads jobs for many callers. It is safe for concurrent use.
type Poll[T any] struct {
	read  func() (map[string]T, error)
	every time.Duration

	mu      sync.Mutex
	next    *Look[T]            // next reading, not begun yet; nil: nobody needs one
	looking bool                // carryOut is running
	waiting map[*waiter[T]]bool // waiters that get each reading
	polling bool                // poll is running
	wake    chan struct{}       // capacity 1: the set of waiters has changed
}

// New returns a Poll that reads jobs with read. While somebody waits, every is the time between two readings; 0 means
// a twentieth of the age of the youngest wait, between 1 s and 30 s.
func New[T any](every time.Duration, read func() (map[string]T, error)) *Poll[T] {
	return &Poll[T]{read: read, every: every, waiting: map[*waiter[T]]bool{}, wake: make(chan struct{}, 1)}
}

// Look reads the jobs. The reading begins after the call; all callers until its begin share it. The error is that of
// the reading, or the cause of ctx.
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

// carryOut reads the jobs again and again while a caller needs a reading.
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

// Each calls take with each reading, also with failed ones, until take reports that the wait is over or returns an
// error, or ctx ends. If several readings come while take runs, only the last counts.
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

// Until is Each for a function that also returns a value.
func Until[T, E any](ctx context.Context, p *Poll[T],
	judge func(context.Context, *Look[T]) (found E, over bool, err error)) (found E, err error) {
	err = p.Each(ctx, func(l *Look[T]) (over bool, err error) {
		found, over, err = judge(ctx, l)
		return over, err
	})
	return found, err
}

// waiter is a caller that gets each reading of the shared poll.
type waiter[T any] struct {
	since time.Time
	looks chan *Look[T] // capacity 1: holds the last reading
}

// join adds a waiter. leave removes it.
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

// poll reads the jobs for all waiters, as long as there are any.
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
		l, _ := p.Look(context.Background()) // the waiters get the error
		p.mu.Lock()
		for w := range p.waiting {
			select {
			case <-w.looks: // the waiter has not taken the previous reading
			default:
			}
			w.looks <- l
		}
		p.mu.Unlock()
	}
}

// interval returns the time between two readings. Without waiters, wanted is false and the poll ends.
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
