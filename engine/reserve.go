package engine

import (
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/device"
)

// reservation keeps a place for the first step whose request was refused. Another step may start before it only if that
// other step ends before the reserved time, or leaves enough for the first step. Without reservations, small nodes
// would keep a large node waiting for ever.
type reservation struct {
	at    time.Time      // the expected start of the first step
	spare device.Amounts // amounts that are then left beside the first step
}

// settles reports whether a request will be granted although its devices seem busy: they only cool down. A request for
// one device needs no reservation for that, since it takes the first device that is ready.
func settles(q device.Request, why *device.Refusal) bool { return why.Settles && q.GPUs.Count > 1 }

// reserve returns a reservation for a refused request; nil if nobody knows when the request can be granted, because
// other processes hold the missing amounts. A quiet request needs none: it comes last anyway. While devices are being
// looked at or settle, the pool counts them as free, and the request may need all of them.
func (r *run) reserve(q device.Request, why *device.Refusal) *reservation {
	now := time.Now()
	lastSlot := r.Parallelism > 0 && r.counts[running] == r.Parallelism-1
	if why.Looking && (q.Quiet || lastSlot) {
		return &reservation{at: now} // otherwise another step takes its turn, each time
	}
	if q.Quiet {
		return nil
	}
	free := r.Pool.Free(q)
	free.GPUs -= why.Taken
	soon := why.Looking || settles(q, why)
	if free.Covers(q) && !soon {
		return nil
	}
	at, running := now, slices.Clone(r.active)
	slices.SortStableFunc(running, func(a, b *attempt) int { return a.expected(now).Compare(b.expected(now)) })
	for _, a := range running {
		if free.Covers(q) {
			break
		}
		at = a.expected(now)
		free = free.Plus(a.lease.Amounts(q.GPUs))
	}
	if !free.Covers(q) {
		return nil
	}
	spare := free.Minus(q)
	if soon {
		spare.GPUs = 0
	}
	return &reservation{at, spare}
}

// expected returns when an attempt should end; now if its duration is unknown or it is late.
func (a *attempt) expected(now time.Time) time.Time {
	end := a.Start.Add(a.estimate)
	if end.Before(now) {
		return now
	}
	return end
}

// lets reports whether a step may start before the first one. It may delay that start by a tenth of the remaining wait:
// otherwise devices would be idle for an hour because a step ends a minute too late. Since the remaining wait gets
// shorter each time, all delays together are at most a ninth.
func (v *reservation) lets(s *Step, asks device.Request) bool {
	if v == nil || v.spare.Covers(asks) {
		return true
	}
	wait := time.Until(v.at)
	return s.Estimate > 0 && s.Estimate <= wait+wait/10
}
