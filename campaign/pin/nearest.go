package pin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/tasks"
)

// ancestors finds the ancestors whose wheels may serve instead, for wheels with nearest: by repo and overlay, then by
// revision.
func (p *Resolver) ancestors(ctx context.Context, wheels []*hclspec.Wheel) (map[outsideOf]map[string][]git.Ancestor,
	hcl.Diagnostics) {
	most, commits, firstWheel := map[outsideOf]int{}, map[outsideOf][]string{}, map[outsideOf]*hclspec.Wheel{}
	for _, w := range wheels {
		src := p.SourceOf(w.Source)
		if w.Nearest == 0 || src == nil {
			continue
		}
		key := outsideOf{src.Repo, tasks.Patterns(w.Overlay)}
		most[key], firstWheel[key] = max(most[key], w.Nearest), w
		commits[key] = append(commits[key], src.Rev)
	}
	all := map[outsideOf]map[string][]git.Ancestor{}
	for key, w := range firstWheel {
		mirror, err := p.Mirror(ctx, key.repo)
		if err == nil {
			end := p.Asker.Watch(p.lockOf(key.repo.Name).Location, "history of "+key.repo.String())
			all[key], err = mirror.Nearest(ctx, commits[key], w.Overlay, most[key])
			end()
		}
		if err != nil {
			return nil, hcl.Diagnostics{problem(w.Range, "History cannot be read",
				fmt.Sprintf("%s: %v", w.Address, err))}
		}
	}
	return all, nil
}

// pinOutsides pins the digests of the ancestors' trees outside the overlay, so that a plan without network can tell
// that their wheels still serve.
func (p *Resolver) pinOutsides(ctx context.Context, wheels []*hclspec.Wheel) hcl.Diagnostics {
	wanted, firstWheel := map[outsideOf][]string{}, map[outsideOf]*hclspec.Wheel{}
	for _, w := range wheels {
		near := p.Lock.Nearest[w.Address.Name][w.Address.Key]
		src := p.SourceOf(w.Source)
		if near.Commit == "" || src == nil {
			continue
		}
		key := outsideOf{src.Repo, tasks.Patterns(w.Overlay)}
		wanted[key], firstWheel[key] = append(wanted[key], near.Commit), w
	}
	for key, commits := range wanted {
		if diags := p.pinOutside(ctx, key, commits, firstWheel[key]); diags.HasErrors() {
			return diags
		}
	}
	return nil
}

// asked has the answers of the sources, so that wheels with the same sources share them.
type asked struct {
	mu  sync.Mutex
	all map[string]func() (tasks.Served, error) // by question
}

// serving returns what serves a wheel: the first of its own sources that has it, else the first source of the nearest
// ancestor. It skips sources that were refused.
func (p *Resolver) serving(ctx context.Context, w *hclspec.Wheel, near []git.Ancestor, a *asked) (tasks.Served, error) {
	refused := p.Lock.Refused[w.Address.Name]
	sources := slices.DeleteFunc(slices.Clone(w.Prebuilt), func(url string) bool {
		return refused[tasks.Refusal(w, url)] != ""
	})
	question := fmt.Sprintln(sources, near, w.Nearest, w.Address.Name, w.Source.Name)
	if len(refused) > 0 {
		question += w.Address.Key
	}
	a.mu.Lock()
	answer := a.all[question]
	if answer == nil {
		answer = sync.OnceValues(func() (tasks.Served, error) { return p.ask(ctx, w, sources, near) })
		a.all[question] = answer
	}
	a.mu.Unlock()
	return answer()
}

func (p *Resolver) ask(ctx context.Context, w *hclspec.Wheel, sources []string, near []git.Ancestor) (tasks.Served,
	error) {
	url, err := p.firstOf(ctx, sources)
	if url != "" || err != nil {
		return tasks.Served{URL: url}, err
	}
	refused := p.Lock.Refused[w.Address.Name]
	for _, n := range near {
		if n.Back > w.Nearest {
			break
		}
		urls := slices.DeleteFunc(p.PrebuiltOf(w, n.Commit), func(url string) bool {
			return refused[tasks.Refusal(w, url)] != "" || slices.Contains(w.Prebuilt, url)
		})
		url, err := p.firstOf(ctx, urls)
		if err != nil {
			return tasks.Served{}, err
		}
		if url != "" {
			return tasks.Served{URL: url, Near: lockfile.Near{Commit: n.Commit, Back: n.Back}}, nil
		}
	}
	return tasks.Served{Here: true}, nil
}

// PassOver removes from the lock the pins of wheels that cannot be fetched or are refused, so that the next plan takes
// their next source or builds them. It returns a line of news for each.
func (p *Resolver) PassOver(ctx context.Context, plan *engine.Plan) []string {
	var news []string
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Failure == nil || s.Failure.Failure == nil {
			continue
		}
		f := s.Failure.Failure
		w, url := tasks.Unserved(s.Node, f)
		if w == nil {
			continue
		}
		refused := inner(&p.Lock.Refused, w.Address.Name)
		if _, known := refused[tasks.Refusal(w, url)]; known {
			continue
		}
		why := cmp.Or(f.Evidence, f.Message)
		refused[tasks.Refusal(w, url)] = why
		p.unpin(w)
		news = append(news, fmt.Sprintf("%s: %s is passed over: %s", w.Address, download.WithoutPassword(url), why))
	}
	if len(news) > 0 && !p.Locked {
		p.Asker.Begin()
		// A host that does not answer leaves the wheel to be built, as in any plan.
		_, _ = p.resolveWheels(ctx)
	}
	return news
}

// unpin removes a wheel's source from the lock.
func (p *Resolver) unpin(w *hclspec.Wheel) {
	byKey := maps.Clone(p.Lock.Wheels[w.Address.Name])
	delete(byKey, w.Address.Key)
	p.Lock.Wheels[w.Address.Name] = byKey
	delete(p.Lock.Nearest[w.Address.Name], w.Address.Key)
}

func (p *Resolver) pinWheel(w *hclspec.Wheel, s tasks.Served) {
	name, key := w.Address.Name, w.Address.Key
	if p.Lock.Wheels == nil {
		p.Lock.Wheels = map[string]map[string]string{}
	}
	byKey := maps.Clone(p.Lock.Wheels[name])
	if byKey == nil {
		byKey = map[string]string{}
	}
	byKey[key] = s.URL
	if s.Here {
		byKey[key] = tasks.NotServed(w)
	}
	p.Lock.Wheels[name] = byKey
	delete(p.Lock.Nearest[name], key)
	if s.Near.Commit != "" {
		inner(&p.Lock.Nearest, name)[key] = s.Near
	}
}
