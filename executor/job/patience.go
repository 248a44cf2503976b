package job

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/internal/printable"
)

// Troubles tells a user about temporary troubles, such as a scheduler that does not answer: once until the trouble is
// over. It is safe for concurrent use.
type Troubles struct {
	Tell func(message string) // nil: nobody is told

	mu   sync.Mutex
	told map[string]bool // troubles that are not over
}

// Has reports a trouble, with the message of the scheduler.
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

// Over ends a trouble: the next one of the kind is reported again.
func (t *Troubles) Over(trouble string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.told, trouble)
}

// Pause waits before another try, or until ctx ends: at first for the given time (0: one second), then twice as long
// each time, up to 30 seconds.
func Pause(ctx context.Context, first time.Duration, try int) {
	if first <= 0 {
		first = time.Second
	}
	select {
	case <-time.After(min(first<<min(try, 5), 30*time.Second)):
	case <-ctx.Done():
	}
}

// mostWords limits the messages of a scheduler, in bytes.
const mostWords = 1000

// Words returns a message of a scheduler as one printable line.
func Words(text string) string {
	return printable.Clip(printable.Line(strings.TrimSpace(text)), mostWords)
}
