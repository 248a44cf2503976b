package tasks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/source/git"
)

// wheelLookup is what is known of the wheels of a Spec.
type wheelLookup struct {
	evaluating sync.Mutex    // held while an expression of the file is evaluated after it was read
	of         *hclspec.Spec // whose sources are in the map
	sources    map[hclspec.Address]*hclspec.Source
}

// sourceOf is a source of the file.
func (p *facts) sourceOf(a hclspec.Address) *hclspec.Source {
	l := p.wheels
	if l.of != p.Spec {
		l.of, l.sources = p.Spec, map[hclspec.Address]*hclspec.Source{}
		for i := range p.Spec.Sources {
			l.sources[p.Spec.Sources[i].Address] = &p.Spec.Sources[i]
		}
	}
	return l.sources[a]
}

// sameOutside says whether a commit has the same tree as the wheel's revision outside the overlay, as the lock has it.
func (p *facts) sameOutside(w *hclspec.Wheel, commit string) bool {
	src := p.sourceOf(w.Source)
	if src == nil {
		return false
	}
	digests := p.Lock.Repos[src.Repo.Name].Outside[patterns(w.Overlay)]
	return digests[src.Rev] != "" && digests[src.Rev] == digests[commit]
}

// prebuiltOf are the prebuilt sources of a wheel at another revision. It is safe for concurrent use.
func (p *facts) prebuiltOf(w *hclspec.Wheel, rev string) []string {
	if w.PrebuiltOf == nil {
		return nil
	}
	p.wheels.evaluating.Lock()
	defer p.wheels.evaluating.Unlock()
	return w.PrebuiltOf(rev)
}

// ancestors finds the ancestors whose wheels may serve instead, for the wheels that ask for it: by repo and overlay,
// then by revision.
func (p *resolver) ancestors(ctx context.Context, wheels []*hclspec.Wheel) (map[outsideOf]map[string][]git.Ancestor,
	hcl.Diagnostics) {
	most, commits, first := map[outsideOf]int{}, map[outsideOf][]string{}, map[outsideOf]*hclspec.Wheel{}
	for _, w := range wheels {
		src := p.sourceOf(w.Source)
		if w.Nearest == 0 || src == nil {
			continue
		}
		key := outsideOf{src.Repo, patterns(w.Overlay)}
		most[key], first[key] = max(most[key], w.Nearest), w
		commits[key] = append(commits[key], src.Rev)
	}
	all := map[outsideOf]map[string][]git.Ancestor{}
	for key, w := range first {
		mirror, err := p.mirror(ctx, key.repo)
		if err == nil {
			end := p.asker.Watch(p.lockOf(key.repo.Name).Location, "history of "+key.repo.String())
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

// pinOutsides notes in the lock that the ancestors have the same tree outside the overlay: a plan without network can
// then tell that they still serve.
func (p *resolver) pinOutsides(ctx context.Context, wheels []*hclspec.Wheel) hcl.Diagnostics {
	wanted, first := map[outsideOf][]string{}, map[outsideOf]*hclspec.Wheel{}
	for _, w := range wheels {
		near := p.Lock.Nearest[w.Address.Name][w.Address.Key]
		src := p.sourceOf(w.Source)
		if near.Commit == "" || src == nil {
			continue
		}
		key := outsideOf{src.Repo, patterns(w.Overlay)}
		wanted[key], first[key] = append(wanted[key], near.Commit), w
	}
	for key, commits := range wanted {
		mirror, err := p.mirror(ctx, key.repo)
		if err != nil {
			return hcl.Diagnostics{p.unreadable(key.repo, err)}
		}
		digests, err := mirror.OutsideAll(ctx, commits, first[key].Overlay)
		if err != nil {
			return hcl.Diagnostics{problem(first[key].Range, "Tree cannot be read", err.Error())}
		}
		outside := p.lockOf(key.repo.Name).Outside
		if outside[key.overlay] == nil {
			outside[key.overlay] = map[string]string{}
		}
		maps.Copy(outside[key.overlay], digests)
	}
	return nil
}

// asked answers once what serves all wheels that have the same sources.
type asked struct {
	mu  sync.Mutex
	all map[string]func() (served, error)
}

// serving is what serves a wheel: the first of its own sources that has it, else that of the nearest ancestor. Sources
// that were refused are passed over.
func (p *resolver) serving(ctx context.Context, w *hclspec.Wheel, near []git.Ancestor, a *asked) (served, error) {
	refused := p.Lock.Refused[w.Address.Name]
	own := slices.DeleteFunc(slices.Clone(w.Prebuilt), func(url string) bool { return refused[refusal(w, url)] != "" })
	question := fmt.Sprintln(own, near, w.Nearest, w.Address.Name, w.Source.Name)
	if len(refused) > 0 {
		question += w.Address.Key
	}
	a.mu.Lock()
	answer := a.all[question]
	if answer == nil {
		answer = sync.OnceValues(func() (served, error) { return p.ask(ctx, w, own, near) })
		a.all[question] = answer
	}
	a.mu.Unlock()
	return answer()
}

func (p *resolver) ask(ctx context.Context, w *hclspec.Wheel, own []string, near []git.Ancestor) (served, error) {
	url, err := p.firstOf(ctx, own)
	if url != "" || err != nil {
		return served{url: url}, err
	}
	refused := p.Lock.Refused[w.Address.Name]
	for _, n := range near {
		if n.Back > w.Nearest {
			break
		}
		urls := slices.DeleteFunc(p.prebuiltOf(w, n.Commit), func(url string) bool {
			return refused[refusal(w, url)] != "" || slices.Contains(w.Prebuilt, url)
		})
		url, err := p.firstOf(ctx, urls)
		if err != nil {
			return served{}, err
		}
		if url != "" {
			return served{url: url, near: hclspec.NearLock{Commit: n.Commit, Back: n.Back}}, nil
		}
	}
	return served{here: true}, nil
}

// builtHere begins what stands in the lock for a wheel that no source serves.
const builtHere = "build"

// withReason is a source as a plan shows it, with the reason for which it was refused.
func withReason(url, why string) string {
	url = withoutPassword(url)
	if why != "" {
		url += " (" + strings.TrimSuffix(why, ".") + ")"
	}
	return url
}
