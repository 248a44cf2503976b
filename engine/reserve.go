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
	spare device.Amounts // the amounts that are then left over beside it
}

// settles says whether a request can be foreseen to be granted although others seem to keep its devices: they only cool
// down. Who needs one device takes the first that is ready.
func settles(q device.Request, why *device.Refusal) bool { return why.Settles && q.GPUs.Count > 1 }

// reserve works out when a request that was refused can be granted. It returns nil when that cannot be told: somebody
// else holds what is missing. For quiet, nobody has to be kept back: it comes after all others anyway. While devices
// are looked at or settle, the pool counts them as free, and all of them may be needed.
func (r *run) reserve(q device.Request, why *device.Refusal) *reservation {
	now := time.Now()
	lastSlot := r.Parallelism > 0 && r.counts[running] == r.Parallelism-1
	if why.Looking && (q.Quiet || lastSlot) {
		return &reservation{at: now} // else whatever starts first takes its turn, each time
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

// expected is when an attempt should end: any moment, when nobody knows how long it takes, or it is late.
func (a *attempt) expected(now time.Time) time.Time {
	end := a.Start.Add(a.estimate)
	if end.Before(now) {
		return now
	}
	return end
}

// lets says whether a step may go before what the reservation is for. It may keep that waiting a little longer, by a
// tenth: else devices would be idle for an hour because something ends a minute too late. As there is less left to wait
// each time, the delays add up to a ninth at most.
func (v *reservation) lets(s *Step, asks device.Request) bool {
	if v == nil || v.spare.Covers(asks) {
		return true
	}
	wait := time.Until(v.at)
	return s.Estimate > 0 && s.Estimate <= wait+wait/10
}
