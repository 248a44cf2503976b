package eval

import (
	"fmt"
	"runtime"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/internal/usage"
)

// Bounds are what an evaluation may take.
type Bounds struct {
	Processor time.Duration // of the process, so that an evaluation that waits for others is not stopped
	Memory    uint64        // bytes by which heap and stacks may grow
}

// StandardBounds are above the need of the largest project that the other limits let through.
func StandardBounds() Bounds { return Bounds{Processor: 30 * time.Second, Memory: 2 << 30} }

// tick is how often the watchdog looks.
const tick = 5 * time.Millisecond

// Stopped is the summary of the diagnostic for an evaluation that was stopped.
const Stopped = "Too much to evaluate"

// Watch calls f in a goroutine of its own. When f takes more than the bounds, Watch returns a diagnostic that names the
// expression that was evaluated last, and leaves the goroutine behind: it ends before it evaluates another expression
// or another element of a loop. Go can end no goroutine that does not look, so a program that lives on should not call
// Watch again. Nothing that f changes may be read after a diagnostic.
func (s *Scope) Watch(bounds Bounds, f func()) *hcl.Diagnostic {
	done := make(chan struct{})
	processor := usage.Processor()
	s.most = usage.Memory() + bounds.Memory
	go func() {
		defer close(done)
		f()
	}()
	looks := time.NewTicker(tick)
	defer looks.Stop()
	for {
		select {
		case <-done:
			s.most = 0
			return nil
		case <-looks.C:
		}
		if usage.Processor()-processor > bounds.Processor {
			return s.stop(fmt.Sprintf("The evaluation takes more than %s of processor time.", bounds.Processor))
		}
		if usage.Memory() <= s.most {
			continue
		}
		runtime.GC() // garbage is no need
		if usage.Memory() > s.most {
			return s.stop(fmt.Sprintf("The evaluation takes more than %d MiB of memory.", bounds.Memory>>20))
		}
	}
}

// weigh has an evaluation that made a large text, and holds too much, wait for the watchdog: a text that is doubled
// outgrows a machine between two looks.
func (s *Scope) weigh(v cty.Value) {
	if s.most > 0 && !v.IsMarked() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() &&
		len(v.AsString()) > 1<<20 {
		for usage.Memory() > s.most {
			s.checkpoint()
			time.Sleep(tick)
		}
	}
}

// place is the expression that is evaluated, and the key of its instance.
type place struct {
	expr     hcl.Expression
	instance string
}

// stop makes the diagnostic for an evaluation that takes too much, and has the evaluation end.
func (s *Scope) stop(why string) *hcl.Diagnostic {
	s.stopped.Store(true)
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: Stopped,
		Detail: why + " Go over fewer elements here, or let a task compute the value.",
	}
	if at.instance != "" {
		d.Detail += fmt.Sprintf(" (for each.key = %q)", at.instance)
	}
	if at.expr != nil {
		r := at.expr.Range()
		d.Subject = &r
	}
	return d
}

// evaluating notes which expression is evaluated now, for the watchdog.
func (s *Scope) evaluating(expr hcl.Expression, instance string) {
	s.checkpoint()
	s.mu.Lock()
	s.at = place{expr, instance}
	s.mu.Unlock()
}

// checkpoint ends the goroutine of an evaluation that was stopped. A panic would not do: cty catches those of its
// functions.
func (s *Scope) checkpoint() {
	if s.stopped.Load() {
		runtime.Goexit()
	}
}
