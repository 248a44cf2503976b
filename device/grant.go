package device

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/internal/flock"
)

// freeGPUs are the devices that suit and can be granted, and that no lease of this pool holds.
func (p *LocalPool) freeGPUs(want GPUs) []Device {
	held := map[string]bool{}
	for l := range p.leases {
		for _, d := range l.GPUs {
			held[d.UUID] = true
		}
	}
	return slices.DeleteFunc(p.suitable(want), func(d Device) bool { return held[d.UUID] || p.lost(d) != "" })
}

func (p *LocalPool) lost(d Device) string {
	if p.total.Lost == nil {
		return ""
	}
	return p.total.Lost(d)
}

// suitable are the devices that suit, whoever holds them.
func (p *LocalPool) suitable(want GPUs) []Device {
	return slices.DeleteFunc(slices.Clone(p.total.GPUs()), func(d Device) bool { return !want.Suits(d) })
}

// byKind groups devices by their kind, in the order of the first of each.
func byKind(devices []Device) [][]Device {
	var groups [][]Device
	at := map[string]int{}
	for _, d := range devices {
		kind := KindOf(d)
		i, seen := at[kind]
		if !seen {
			i, at[kind] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// takeGPUs chooses devices of one kind that nobody holds, the best connected ones, and locks them.
func (p *LocalPool) takeGPUs(want GPUs, h *hold) ([]Device, *Refusal) {
	if want.Count == 0 {
		return nil, nil
	}
	refused := map[string]*Refusal{} // by UUID
	for _, free := range byKind(p.freeGPUs(want)) {
		for len(free) >= want.Count {
			chosen := choose(p.first(free, want.Count), want.Count, p.total.Links)
			not, why := p.lockGPUs(chosen, h)
			if why == nil {
				return chosen, nil
			}
			if why.Looking {
				if len(refused) > 0 { // rather look at all at once now than at one after the other
					p.lookAt(free)
				}
				return nil, why
			}
			// What was locked beside it is let go: a better set may be there without both.
			refused[not] = why
			free = slices.DeleteFunc(free, func(d Device) bool { return d.UUID == not })
		}
	}
	return nil, p.refuseGPUs(want, refused)
}

// first are the devices of which n are chosen: all but those that are granted last, if these are enough.
func (p *LocalPool) first(free []Device, n int) []Device {
	if p.total.Last == nil {
		return free
	}
	if first := slices.DeleteFunc(slices.Clone(free), p.total.Last); len(first) >= n {
		return first
	}
	return free
}

// settlingTime is how long a device may still be warm or busy because of what ran on it before it was given back.
const settlingTime = 30 * time.Second

// refuseGPUs says why devices cannot be had: what is wrong with each one that is neither free nor leased.
func (p *LocalPool) refuseGPUs(want GPUs, refused map[string]*Refusal) *Refusal {
	now := map[string]bool{} // the free ones, by UUID
	for _, d := range p.freeGPUs(want) {
		now[d.UUID] = refused[d.UUID] == nil
	}
	r := &Refusal{Outside: true, Lost: true, Changed: p.change}
	var reasons []string
	most, settles := 0, false
	for _, kind := range byKind(p.suitable(want)) {
		free, settling := 0, 0
		ours, left := len(kind), len(kind) // to be had when we are done with them; when others are, too
		for _, d := range kind {
			why := p.lost(d)
			if not := refused[d.UUID]; why != "" {
				ours, left = ours-1, left-1
			} else if not != nil {
				why = not.WaitsFor
				if not.Outside {
					ours--
				}
				if given, ok := p.given[d.UUID]; not.Outside && ok && time.Since(given) < settlingTime {
					settling++
				}
			} else if now[d.UUID] {
				free++
			}
			if why != "" {
				reasons = append(reasons, fmt.Sprintf("device %d: %s", d.Index, why))
			}
		}
		most = max(most, free)
		r.Outside = r.Outside && ours < want.Count
		settles = settles || ours+settling >= want.Count
		r.Lost = r.Lost && left < want.Count
		r.Taken -= settling
	}
	r.Settles = r.Outside && settles
	r.Taken += len(refused)
	r.WaitsFor = fmt.Sprintf("%s (%s)", want, strings.Join(append([]string{fmt.Sprintf("%d of them free", most)}, reasons...), "; "))
	return r
}

// lockGPUs locks all of the devices against other processes, or none; then it returns the UUID of one that is not to be had, and why. What
// is to be looked at is locked before: when another benchgraph uses it, there is nothing to see.
func (p *LocalPool) lockGPUs(chosen []Device, h *hold) (not string, why *Refusal) {
	for _, d := range chosen {
		if refused := p.lockGPU(d, h); refused != nil {
			not, why = d.UUID, refused
			if !why.Looking { // else the others are looked at meanwhile
				break
			}
		}
	}
	if why != nil {
		for _, l := range h.gpus {
			l.close()
		}
		h.gpus = nil
	}
	return not, why
}

func (p *LocalPool) lockGPU(d Device, h *hold) *Refusal {
	if p.host != nil {
		lock, err := p.host.gpu(d)
		if flock.Held(err) {
			delete(p.looks, d.UUID) // it says nothing of how that will leave it
			return &Refusal{WaitsFor: "leased by another benchgraph"}
		}
		if err != nil {
			return &Refusal{WaitsFor: fmt.Sprintf("its lock: %v", err), Outside: true}
		}
		h.gpus = append(h.gpus, lock)
	}
	switch l := p.lastLook(d); {
	case !l.known:
		return &Refusal{WaitsFor: fmt.Sprintf("a look at device %d", d.Index), Looking: true, Changed: p.change}
	case l.why != "":
		return &Refusal{WaitsFor: l.why, Outside: true}
	}
	return nil
}
