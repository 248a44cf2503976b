package job

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/internal/printable"
)

// Troubles tell a user of what passes by itself, such as a scheduler that does not answer: once, until it is over. They
// are safe for concurrent use.
type Troubles struct {
	Tell func(message string) // nil: nobody

	mu   sync.Mutex
	told map[string]bool // that are not over
}

// Has tells of a trouble, with the words of the scheduler.
func (t *Troubles) Has(trouble, words string) {
	t.mu.Lock()
	first := !t.told[trouble]
	if t.told == nil {
		t.told = map[string]bool{}
	}
	t.told[trouble] = true
	t.mu.Unlock()
	if first && t.Tell != nil {
		t.Tell(fmt.Sprintf("%s (%s)", trouble, words))
	}
}

// Over ends a trouble: the next one of the kind is told again.
func (t *Troubles) Over(trouble string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.told, trouble)
}

// Pause waits before another try, or until ctx ends: at first for as long as is given, then twice as long each time, up
// to half a minute. 0 stands for a second.
func Pause(ctx context.Context, first time.Duration, try int) {
	if first <= 0 {
		first = time.Second
	}
	select {
	case <-time.After(min(first<<min(try, 5), 30*time.Second)):
	case <-ctx.Done():
	}
}

// mostWords bounds the words of a scheduler that are shown, in bytes.
const mostWords = 1000

// Words are those of a scheduler in one line, fit to be shown.
func Words(text string) string { return Short(printable.Line(strings.TrimSpace(text)), mostWords) }

// Short is a text of at most so many bytes, with a mark where it was longer.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
