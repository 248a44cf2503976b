package device

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/hostlock"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/device/process"
	"github.com/benchgraph/benchgraph/device/wish"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// free returns those of some devices that can be granted and that no lease of this pool holds.
func (p *LocalPool) free(some []gpu.Device) []gpu.Device {
	held := map[string]bool{}
	for l := range p.leases {
		for _, d := range l.GPUs {
			held[d.UUID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(some), func(d gpu.Device) bool { return held[d.UUID] || p.lost(d) != "" })
}

func (p *LocalPool) lost(d gpu.Device) string {
	if p.total.Lost == nil {
		return ""
	}
	return p.total.Lost(d)
}

// suitable returns the devices that suit a request, whoever holds them.
func (p *LocalPool) suitable(want GPUs) []gpu.Device {
	return slices.DeleteFunc(slices.Clone(p.total.GPUs()), func(d gpu.Device) bool { return !want.Suits(d) })
}

// takeGPUs locks devices of one kind. If no kind can be granted, it returns the most promising refusal.
func (p *LocalPool) takeGPUs(want GPUs, h *hold) ([]gpu.Device, *Refusal) {
	if want.Count == 0 {
		return nil, nil
	}
	var refused *Refusal
	suitable := p.suitable(want)
	for _, kind := range machine.ByKind(suitable) {
		if len(kind) < want.Count {
			continue
		}
		chosen, why := p.takeOf(kind, want, h)
		if why == nil && p.host != nil {
			p.host.Wishes.End(want)
		}
		if why == nil || why.Looking {
			return chosen, why
		}
		if refused == nil || refused.Outside && !why.Outside || refused.Lost && !why.Lost {
			refused = why
		}
	}
	if p.host != nil && want.Count > 1 && refused != nil && refused.Taken > 0 && !refused.Outside {
		var uuids []string
		for _, d := range suitable {
			uuids = append(uuids, d.UUID)
		}
		p.host.Wishes.Make(want, want.Count, uuids)
	}
	return nil, refused
}

// takeOf chooses the best connected free devices out of some, and locks them.
func (p *LocalPool) takeOf(some []gpu.Device, want GPUs, h *hold) ([]gpu.Device, *Refusal) {
	free := p.free(some)
	refused := map[string]*Refusal{} // by UUID
	if p.host != nil {
		older, kept := p.host.Wishes.Older(want), map[*wish.Wish]*Refusal{}
		free = slices.DeleteFunc(free, func(d gpu.Device) bool {
			w := older[d.UUID]
			if w == nil {
				return false
			}
			if kept[w] == nil { // one wish may name several devices
				kept[w] = &Refusal{WaitsFor: keptFor(w)}
			}
			refused[d.UUID] = kept[w]
			return true
		})
	}
	for len(free) >= want.Count {
		chosen := choose(p.preferred(free, want.Count), want.Count, p.total.Links)
		not, why := p.lockGPUs(chosen, h)
		if why == nil {
			return chosen, nil
		}
		if why.Looking {
			if len(refused) > 0 { // check all at once instead of one after the other
				p.lookAt(free)
			}
			return nil, why
		}
		// lockGPUs has released the other devices: without this one, another set may be better.
		refused[not] = why
		free = slices.DeleteFunc(free, func(d gpu.Device) bool { return d.UUID == not })
	}
	free = slices.DeleteFunc(free, func(d gpu.Device) bool {
		leased := p.host != nil && p.host.LeasedElsewhere(d)
		if leased {
			refused[d.UUID] = &Refusal{WaitsFor: elsewhereLeased}
		}
		return leased
	})
	return nil, p.refuse(want, some, len(free), refused)
}

// keptFor returns a text about the process for which a device is kept.
func keptFor(w *wish.Wish) string {
	p := process.Process{PID: w.PID}
	p.Identify()
	return fmt.Sprintf("kept for %s, which waits for %d devices since %s",
		hostlock.Holder{PID: p.PID, User: p.User, Program: p.Name}, w.Count, w.Since.Local().Format(time.DateTime))
}

// elsewhereLeased is the reason for a device that another process has locked.
const elsewhereLeased = "leased by another benchgraph"

// preferred returns the devices from which n are chosen: all but those of Options.Last, if these are enough.
func (p *LocalPool) preferred(free []gpu.Device, n int) []gpu.Device {
	if p.total.Last == nil {
		return free
	}
	if first := slices.DeleteFunc(slices.Clone(free), p.total.Last); len(first) >= n {
		return first
	}
	return free
}

// settles is how long a device may still be warm or busy after its last lease.
const settles = 30 * time.Second

// refuse returns the refusal for devices out of some, with a reason for each device that is neither free nor leased
// by this pool.
func (p *LocalPool) refuse(want GPUs, some []gpu.Device, free int, refused map[string]*Refusal) *Refusal {
	reasons := []string{fmt.Sprintf("%d of them free", free)}
	ours, left := len(some), len(some) // devices available after our leases end; after others' use ends, too
	settling := 0
	for _, d := range some {
		why := p.lost(d)
		if r := refused[d.UUID]; why != "" {
			ours, left = ours-1, left-1
		} else if r != nil {
			why = r.WaitsFor
			if r.Outside {
				ours--
			}
			if given, ok := p.given[d.UUID]; r.Outside && ok && time.Since(given) < settles {
				settling++
			}
		}
		if why != "" {
			reasons = append(reasons, fmt.Sprintf("device %d: %s", d.Index, why))
		}
	}
	return &Refusal{
		WaitsFor: fmt.Sprintf("%s (%s)", want, strings.Join(reasons, "; ")),
		Outside:  ours < want.Count,
		Settles:  ours < want.Count && ours+settling >= want.Count,
		Lost:     left < want.Count,
		Taken:    len(refused) - settling,
		Changed:  p.change,
	}
}

// lockGPUs locks all of the devices against other processes, or none; then it returns the UUID of an unavailable
// device and the reason. It locks a device before checking it: while another benchgraph uses the device, a check is
// useless.
func (p *LocalPool) lockGPUs(chosen []gpu.Device, h *hold) (not string, why *Refusal) {
	for _, d := range chosen {
		if refused := p.lockGPU(d, h); refused != nil {
			not, why = d.UUID, refused
			if !why.Looking { // otherwise the other devices are checked meanwhile
				break
			}
		}
	}
	if why != nil {
		for _, l := range h.gpus {
			l.Close()
		}
		h.gpus = nil
	}
	return not, why
}

func (p *LocalPool) lockGPU(d gpu.Device, h *hold) *Refusal {
	if p.host != nil {
		lock, err := p.host.Device(d)
		if fs.Held(err) {
			delete(p.looks, d.UUID) // the check says nothing about the device after that lease
			return &Refusal{WaitsFor: elsewhereLeased}
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

// gpusFit returns why devices can never be granted. The error mentions left-out devices, as they may be the missing
// ones.
func (p *LocalPool) gpusFit(want GPUs) error {
	if want.Count == 0 {
		return nil
	}
	suitable := p.suitable(want)
	fit := 0
	for _, kind := range machine.ByKind(suitable) {
		fit = max(fit, len(kind))
	}
	if fit >= want.Count {
		return nil
	}
	amiss := ""
	if p.total.Amiss != nil {
		amiss = p.total.Amiss()
	}
	if len(p.total.GPUs()) == 0 && amiss != "" {
		return fmt.Errorf("needs %s, and %s shows none: %s", want, p.total.Name, amiss)
	}
	has := "none"
	if fit > 0 {
		has = fmt.Sprint(fit)
	}
	if len(suitable) > fit {
		has += fmt.Sprintf(" of one kind (%s)", strings.Join(machine.CountKinds(suitable), ", "))
	}
	text := fmt.Sprintf("needs %s; %s has %s", want, p.total.Name, has)
	if near, lacks := p.nearest(want); lacks != nil && fit == 0 {
		text += fmt.Sprintf(" (nearest: %s %s, but it %s)", near.Name, printable.Bytes(near.Memory),
			strings.Join(lacks, " and "))
	}
	if amiss != "" {
		text += "; it leaves out " + amiss
	}
	return errors.New(text)
}

// nearest returns the device that lacks the fewest conditions, then the least memory.
func (p *LocalPool) nearest(want GPUs) (gpu.Device, []string) {
	all := p.total.GPUs()
	if len(all) == 0 {
		return gpu.Device{}, nil
	}
	near := slices.MinFunc(all, func(a, b gpu.Device) int {
		if n := len(want.lacks(a)) - len(want.lacks(b)); n != 0 {
			return n
		}
		return int((b.Memory - a.Memory) >> 20)
	})
	return near, want.lacks(near)
}
