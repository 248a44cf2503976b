package eval

import (
	"fmt"
	"runtime"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/internal/usage"
)

// Bounds are the bounds of an evaluation.
type Bounds struct {
	Processor time.Duration // processor time of the process, so that waiting does not count
	Memory    uint64        // bytes by which heap and stacks may grow
}

// StandardBounds returns bounds above the need of the largest project within all other limits.
func StandardBounds() Bounds { return Bounds{Processor: 30 * time.Second, Memory: 2 << 30} }

// tick is the interval of the watchdog.
const tick = 5 * time.Millisecond

// Stopped is the summary of the diagnostic for an evaluation that was stopped.
const Stopped = "Too much to evaluate"

// Watch calls f in a goroutine of its own. If f exceeds the bounds, Watch returns a diagnostic that names the last
// evaluated expression, and abandons the goroutine. The goroutine ends before it evaluates another expression or
// another element of a loop. Go cannot end a goroutine from outside, so a program that continues should not call Watch
// again. After a diagnostic, data that f changes must not be read.
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
		runtime.GC() // garbage does not count
		if usage.Memory() > s.most {
			return s.stop(fmt.Sprintf("The evaluation takes more than %d MiB of memory.", bounds.Memory>>20))
		}
	}
}

// weigh makes an evaluation that holds too much memory wait for the watchdog after it made a large text: a text that is
// doubled outgrows a machine between two ticks.
func (s *Scope) weigh(v cty.Value) {
	if s.most > 0 && !v.IsMarked() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() &&
		len(v.AsString()) > 1<<20 {
		for usage.Memory() > s.most {
			s.checkpoint()
			time.Sleep(tick)
		}
	}
}

// place is the expression under evaluation, and the key of its instance.
type place struct {
	expr     hcl.Expression
	instance string
}

// stop returns the diagnostic of an evaluation that exceeds its bounds, and makes the evaluation end.
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

// evaluating records the current expression for the watchdog.
func (s *Scope) evaluating(expr hcl.Expression, instance string) {
	s.checkpoint()
	s.mu.Lock()
	s.at = place{expr, instance}
	s.mu.Unlock()
}

// checkpoint ends the goroutine of a stopped evaluation. A panic would not do, since cty recovers panics of its
// functions.
func (s *Scope) checkpoint() {
	if s.stopped.Load() {
		runtime.Goexit()
	}
}
