package eval

import (
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Bounds are what an evaluation may take.
type Bounds struct {
	Processor time.Duration // of the process, so that an evaluation that waits for others is not stopped
	Memory    uint64        // bytes by which heap and stacks may grow
}

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
	memory, processor := held(), used()
	go func() {
		defer close(done)
		f()
	}()
	looks := time.NewTicker(tick)
	defer looks.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-looks.C:
		}
		if used()-processor > bounds.Processor {
			return s.stop(fmt.Sprintf("The evaluation takes more than %s of processor time.", bounds.Processor))
		}
		if held() <= memory+bounds.Memory {
			continue
		}
		runtime.GC() // garbage is no need
		if held() > memory+bounds.Memory {
			return s.stop(fmt.Sprintf("The evaluation takes more than %d MiB of memory.", bounds.Memory>>20))
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

// held is the memory that heap and stacks take.
func held() (bytes uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	for _, sample := range samples {
		bytes += sample.Value.Uint64()
	}
	return bytes
}

// used is the processor time that this process has taken.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return math.MinInt64 / 2 // the kernel always knows its own caller
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
