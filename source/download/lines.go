package download

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// lines writes lines that tell a waiting user which hosts are slow.
type lines struct {
	out   io.Writer
	quiet time.Duration

	mu    sync.Mutex
	waits map[*wait]bool
	count map[string]*progress // by host, while somebody waits for the host
	stop  chan struct{}        // ends the writing goroutine; nil: there is none
}

type wait struct {
	host    string
	subject string // empty: one of many questions
	of      *progress
}

// progress is the progress of the questions to one host.
type progress struct {
	since    time.Time
	asked    int
	under    int // running questions
	answers  atomic.Int64
	reported time.Duration // length of the wait at the last line
}

func (w *wait) answered() { w.of.answers.Add(1) }

func (l *lines) begin(host, subject string) *wait {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == nil {
		l.count = map[string]*progress{}
	}
	p := l.count[host]
	if p == nil {
		p = &progress{since: time.Now()}
		l.count[host] = p
	}
	p.asked++
	p.under++
	w := &wait{host: host, subject: subject, of: p}
	l.waits[w] = true
	if l.stop == nil && l.out != nil {
		l.stop = make(chan struct{})
		go l.write(l.stop)
	}
	return w
}

// end records the end of a wait.
func (l *lines) end(w *wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waits, w)
	if w.of.under--; w.of.under == 0 {
		delete(l.count, w.host)
	}
	if len(l.waits) == 0 && l.stop != nil {
		close(l.stop)
		l.stop = nil
	}
}

// write writes lines until nobody waits.
func (l *lines) write(stop chan struct{}) {
	tick := time.NewTicker(max(l.quiet/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		due := l.due(time.Now())
		l.mu.Unlock()
		for _, line := range due {
			l.tell(line)
		}
	}
}

// due returns the lines to write now: the first line of a host after the quiet time, the next when the wait has
// doubled, but at least every ten quiet times.
func (l *lines) due(now time.Time) (due []string) {
	for host, p := range l.count {
		waited := now.Sub(p.since)
		if waited < l.quiet || p.reported > 0 && waited < min(2*p.reported, p.reported+10*l.quiet) {
			continue
		}
		p.reported = waited
		line := "waiting for " + host
		subjects := []string{}
		for w := range l.waits {
			if w.of == p && w.subject != "" && !slices.Contains(subjects, w.subject) {
				subjects = append(subjects, w.subject)
			}
		}
		slices.Sort(subjects)
		if len(subjects) > 0 {
			line += ": " + strings.Join(subjects, ", ")
		} else {
			line += fmt.Sprintf(": %d of %d questions are answered", p.answers.Load(), p.asked)
		}
		due = append(due, fmt.Sprintf("%s (%v so far)", line, waited.Round(max(l.quiet/10, time.Millisecond))))
	}
	slices.Sort(due)
	return due
}

func (l *lines) tell(line string) {
	if l.out != nil {
		fmt.Fprintln(l.out, line)
	}
}
