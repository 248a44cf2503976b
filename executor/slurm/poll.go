package slurm

import (
	"context"
	"os"
	"strconv"
	"time"
)

// look is one reading of the queue.
type look struct {
	done chan struct{}    // closed when the rest is there
	jobs map[string]entry // by number
	err  error
}

// look reads the queue. The reading begins after the call; all who call before it begins share it.
func (c *Cluster) look(ctx context.Context) (*look, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &look{done: make(chan struct{})}
	}
	l := c.next
	if !c.looking {
		c.looking = true
		go c.carryOut()
	}
	c.mu.Unlock()
	select {
	case <-l.done:
		return l, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// carryOut carries out looks, one after another, as long as any are wanted.
func (c *Cluster) carryOut() {
	for {
		c.mu.Lock()
		l := c.next
		c.next = nil
		if l == nil {
			c.looking = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		out, err := c.run(context.Background(), call{name: "squeue", args: []string{"--noheader", "--all",
			"--states=all", "--user=" + strconv.Itoa(os.Geteuid()), "--format=" + queueFormat}})
		if err != nil {
			l.err = err
			c.told(silent, err)
		} else {
			c.over(silent)
			l.jobs = map[string]entry{}
			for _, e := range parseQueue(out) {
				l.jobs[e.number] = e
			}
		}
		close(l.done)
	}
}

// find is the first job of a key that is queued or running, or that ended and is not one of those that are known.
func (l *look) find(key string, known map[string]bool) (first string, found bool) {
	for number, e := range l.jobs {
		if e.key != key || ended(e.status.State) && (known == nil || known[number]) {
			continue
		}
		if !found || value(number) < value(first) {
			first, found = number, true
		}
	}
	return first, found
}

func value(number string) uint64 {
	n, _ := strconv.ParseUint(number, 10, 32)
	return n
}

// waiter is one who is handed each look of the shared poll.
type waiter struct {
	since time.Time
	looks chan *look // has room for the last one
}

// join begins to hand looks to a new waiter. leave ends it.
func (c *Cluster) join() *waiter {
	w := &waiter{time.Now(), make(chan *look, 1)}
	c.mu.Lock()
	c.waiting[w] = true
	if !c.polling {
		c.polling = true
		go c.poll()
	}
	c.mu.Unlock()
	c.changed()
	return w
}

func (c *Cluster) leave(w *waiter) {
	c.mu.Lock()
	delete(c.waiting, w)
	c.mu.Unlock()
	c.changed()
}

func (c *Cluster) changed() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// poll looks at the queue for all who wait, as long as there is one.
func (c *Cluster) poll() {
	for last := (time.Time{}); ; {
		every, any := c.every()
		if !any {
			return
		}
		if rest := time.Until(last.Add(every)); rest > 0 {
			select {
			case <-time.After(rest):
			case <-c.wake: // a new waiter may want to know sooner
				continue
			}
		}
		last = time.Now()
		l, _ := c.look(context.Background()) // its error is for the waiters
		c.mu.Lock()
		for w := range c.waiting {
			select {
			case <-w.looks: // nobody took the one before
			default:
			}
			w.looks <- l
		}
		c.mu.Unlock()
	}
}

// every is the time between two looks. Where nobody waits, it ends the poll.
func (c *Cluster) every() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.polling = false
		return 0, false
	}
	if c.o.Every > 0 {
		return c.o.Every, true
	}
	youngest := time.Hour
	for w := range c.waiting {
		youngest = min(youngest, time.Since(w.since))
	}
	return min(max(youngest/20, time.Second), 30*time.Second), true
}
