package pin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/tasks"
)

// outsideOf names the trees outside one overlay in one repo.
type outsideOf struct {
	repo    hclspec.Address
	overlay string
}

// resolveOutsides pins the digests of built trees outside their overlays, with one batch for each overlay.
func (p *Resolver) resolveOutsides(ctx context.Context) (bool, hcl.Diagnostics) {
	wanted, firstWheel := map[outsideOf][]string{}, map[outsideOf]*hclspec.Wheel{}
	for i := range p.Spec.Wheels {
		w := &p.Spec.Wheels[i]
		src := p.SourceOf(w.Source)
		if len(w.Overlay) == 0 || src == nil {
			continue
		}
		key := outsideOf{src.Repo, tasks.Patterns(w.Overlay)}
		if p.lockOf(src.Repo.Name).Outside[key.overlay][src.Rev] == "" {
			wanted[key], firstWheel[key] = append(wanted[key], src.Rev), w
		}
	}
	for key, commits := range wanted {
		w := firstWheel[key]
		if p.Locked {
			return false, hcl.Diagnostics{incomplete(w.Range,
				"The lock file does not have what the overlay of %s leaves of %s", w.Address,
				tasks.ShortRev(commits[0]))}
		}
		if diags := p.pinOutside(ctx, key, commits, w); diags.HasErrors() {
			return false, diags
		}
	}
	return len(wanted) > 0, nil
}

// pinOutside adds to the lock the digests of the commits' trees, without the files that the wheel's overlay covers.
func (p *Resolver) pinOutside(ctx context.Context, key outsideOf, commits []string, w *hclspec.Wheel) hcl.Diagnostics {
	mirror, err := p.Mirror(ctx, key.repo)
	if err != nil {
		return hcl.Diagnostics{p.unreadable(key.repo, err)}
	}
	end := p.Asker.Watch(p.lockOf(key.repo.Name).Location, "trees of "+key.repo.String())
	digests, err := mirror.OutsideAll(ctx, commits, w.Overlay)
	end()
	if err != nil {
		return hcl.Diagnostics{problem(w.Range, "Tree cannot be read", fmt.Sprintf("%s: %v", w.Address, err))}
	}
	outside := p.lockOf(key.repo.Name).Outside
	maps.Copy(inner(&outside, key.overlay), digests)
	return nil
}

// incomplete returns the error that the lock file lacks something and must not change.
func incomplete(at hcl.Range, lack string, args ...any) *hcl.Diagnostic {
	return problem(at, "Lock file is incomplete", fmt.Sprintf(lack, args...)+
		", and -locked forbids to add it. Run without -locked once and commit the lock file. Leave out -locked where "+
		"each run measures another commit, as in CI.")
}

// inner returns the map under a key in a map of maps, and makes the maps that are missing.
func inner[V any](m *map[string]map[string]V, key string) map[string]V {
	if *m == nil {
		*m = map[string]map[string]V{}
	}
	if (*m)[key] == nil {
		(*m)[key] = map[string]V{}
	}
	return (*m)[key]
}

// resolveWheels asks the prebuilt sources of each wheel, in order, and pins the first that has the wheel. A wheel that
// appears later changes nothing until the lock is edited.
func (p *Resolver) resolveWheels(ctx context.Context) (bool, hcl.Diagnostics) {
	var open []*hclspec.Wheel
	for i := range p.Spec.Wheels {
		w := &p.Spec.Wheels[i]
		if len(w.Prebuilt) > 0 && !p.ServedBy(w).Known() {
			open = append(open, w)
		}
	}
	if len(open) == 0 || p.Locked && p.Offline {
		return false, nil
	}
	if p.Locked {
		return false, hcl.Diagnostics{incomplete(open[0].Range,
			"The lock file does not say which prebuilt source serves %s", open[0].Address)}
	}
	near := map[outsideOf]map[string][]git.Ancestor{}
	if !p.Offline {
		var diags hcl.Diagnostics
		if near, diags = p.ancestors(ctx, open); diags.HasErrors() {
			return false, diags
		}
	}
	pinned, unverified := p.askAll(ctx, open, near)
	if ctx.Err() != nil {
		return len(pinned) > 0, hcl.Diagnostics{problem(open[0].Range, "Prebuilt sources", context.Cause(ctx).Error())}
	}
	return len(pinned) > 0, append(p.pinOutsides(ctx, pinned), p.tellSilence(unverified)...)
}

// askAll asks for all wheels at the same time and pins the answers. It returns the pinned wheels, and the other wheels
// by the host that did not answer.
func (p *Resolver) askAll(ctx context.Context, open []*hclspec.Wheel,
	near map[outsideOf]map[string][]git.Ancestor) (pinned []*hclspec.Wheel, unverified map[string][]silence) {
	type answer struct {
		tasks.Served
		err error
	}
	answers := make([]answer, len(open))
	once := &asked{all: map[string]func() (tasks.Served, error){}}
	var wg sync.WaitGroup
	for i, w := range open {
		var ancestors []git.Ancestor
		if src := p.SourceOf(w.Source); w.Nearest > 0 && src != nil {
			ancestors = near[outsideOf{src.Repo, tasks.Patterns(w.Overlay)}][src.Rev]
		}
		wg.Go(func() { answers[i].Served, answers[i].err = p.serving(ctx, w, ancestors, once) })
	}
	wg.Wait()
	unverified = map[string][]silence{}
	for i, w := range open {
		if silent, ok := errors.AsType[*download.Unverified](answers[i].err); ok {
			unverified[silent.Host] = append(unverified[silent.Host], silence{w, silent.Err})
		} else if answers[i].err == nil {
			p.pinWheel(w, answers[i].Served)
			pinned = append(pinned, w)
		}
	}
	return pinned, unverified
}

// silence is a wheel for which a host did not answer.
type silence struct {
	wheel *hclspec.Wheel
	why   error
}

// tellSilence returns one warning for each host. Offline there is none: the plan shows the reason at each wheel.
func (p *Resolver) tellSilence(unverified map[string][]silence) (diags hcl.Diagnostics) {
	if p.Offline {
		return nil
	}
	for _, host := range slices.Sorted(maps.Keys(unverified)) {
		all := unverified[host]
		slices.SortFunc(all, func(a, b silence) int {
			return strings.Compare(a.wheel.Address.String(), b.wheel.Address.String())
		})
		wheels := all[0].wheel.Address.String()
		if len(all) > 1 {
			wheels += fmt.Sprintf(" and %d other wheels", len(all)-1)
		}
		d := problem(all[0].wheel.Range, "Prebuilt source does not answer",
			fmt.Sprintf("%s: unverified whether %s has it: %v. The next plan asks again; until then such a wheel "+
				"counts as to be built.", wheels, host, all[0].why))
		d.Severity = hcl.DiagWarning
		diags = append(diags, d)
	}
	return diags
}

// firstOf returns the first of the URLs that has a file; "" if none has one.
func (p *Resolver) firstOf(ctx context.Context, urls []string) (string, error) {
	for _, url := range urls {
		_, err := p.Asker.Head(ctx, url)
		var refused *download.Refused
		switch {
		case err == nil:
			return url, nil
		case !errors.As(err, &refused):
			return "", err
		}
	}
	return "", nil
}
