package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/wheel"
)

// prebuiltTask fetches a wheel that somebody else built from a revision, and proves that they did.
type prebuiltTask struct {
	downloadTask
	wheel *hclspec.Wheel
	tree  *tree // that it was built from, without a patch; nil: the wheel names no source, and nothing can be proven
}

func (t *prebuiltTask) Describe(d *cache.Description) {
	t.downloadTask.Describe(d)
	if t.tree != nil {
		d.Add("proven by", t.tree.rev)
		t.tree.Describe(d)
		d.Add("overlay", t.wheel.Overlay...)
	}
}

func (t *prebuiltTask) Run(ctx context.Context, env *engine.Env) error {
	if err := t.downloadTask.Run(ctx, env); err != nil || t.tree == nil {
		return err
	}
	mirror, err := t.p.mirror(ctx, t.tree.repo)
	if err != nil {
		return gitFailure(err)
	}
	files, err := mirror.Files(ctx, t.tree.rev)
	if err != nil {
		return gitFailure(err)
	}
	name := filepath.Join(env.Out, fileName(t.url))
	if filepath.Ext(name) == ".whl" {
		compared, err := wheel.Prove(name, t.tree.rev, files)
		var refusal *wheel.Refusal
		if errors.As(err, &refusal) {
			return &engine.Failure{Err: err, Failure: cache.Failure{
				Class: cache.Permanent, Rule: prebuiltRefused, Stage: "fetch", Evidence: refusal.Evidence,
				Message: fmt.Sprintf("%s is no wheel of %s: %s", withoutPassword(t.url), short(t.tree.rev),
					refusal.Evidence),
				Remedy: "the next source serves, or it is built here; without either, declare a build",
			}}
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Log, "proven: %d files are those of %s\n", compared, short(t.tree.rev))
	}
	if len(t.wheel.Overlay) == 0 {
		return nil
	}
	return wheel.RecordNames(slices.Collect(maps.Keys(files)), t.wheel.Overlay, env.Out)
}

// prebuiltRefused is the rule of a wheel that is not what it is said to be.
const prebuiltRefused = "prebuilt_refused"

// refusal names in the lock that a URL does not serve a wheel.
func refusal(w *hclspec.Wheel, url string) string { return url + " " + w.Address.Key }

// passOver takes wheels that cannot be fetched, or are refused, out of the lock: the next plan takes their next source,
// or builds them. It returns what it did, as lines.
func (p *resolver) passOver(ctx context.Context, plan *engine.Plan) []string {
	var news []string
	for i := range plan.Steps {
		s := &plan.Steps[i]
		t, ok := s.Node.Task.(*prebuiltTask)
		if !ok || s.Failure == nil || s.Failure.Failure == nil {
			continue
		}
		f := s.Failure.Failure
		if f.Rule != prebuiltRefused && f.Rule != "download_refused" && f.Rule != "download_too_large" {
			continue
		}
		w := t.wheel
		if p.Lock.Refused == nil {
			p.Lock.Refused = map[string]map[string]string{}
		}
		if p.Lock.Refused[w.Address.Name] == nil {
			p.Lock.Refused[w.Address.Name] = map[string]string{}
		}
		if _, known := p.Lock.Refused[w.Address.Name][refusal(w, t.url)]; known {
			continue
		}
		why := f.Evidence
		if why == "" {
			why = f.Message
		}
		p.Lock.Refused[w.Address.Name][refusal(w, t.url)] = why
		p.unpin(w)
		news = append(news, fmt.Sprintf("%s: %s is passed over: %s", w.Address, withoutPassword(t.url), why))
	}
	if len(news) > 0 && !p.Locked {
		p.asker.Begin()
		// A host that does not answer leaves the wheel to be built, as in any plan.
		_, _ = p.resolveWheels(ctx)
	}
	return news
}

// unpin forgets what serves a wheel.
func (p *resolver) unpin(w *hclspec.Wheel) {
	byKey := maps.Clone(p.Lock.Wheels[w.Address.Name])
	delete(byKey, w.Address.Key)
	p.Lock.Wheels[w.Address.Name] = byKey
	delete(p.Lock.Nearest[w.Address.Name], w.Address.Key)
}

// served is what serves a wheel: the URL of a prebuilt one, and of which ancestor it is; or that it is to be built
// here.
type served struct {
	url  string // empty: not known
	near hclspec.NearLock
	here bool
}

// servedBy is what the lock says of a wheel. A URL that the file no longer names says nothing: it may be that of
// another revision. So does an ancestor whose tree is another one outside the overlay as it is now.
func (p *facts) servedBy(w *hclspec.Wheel) served {
	name, key := w.Address.Name, w.Address.Key
	url, near := p.Lock.Wheels[name][key], p.Lock.Nearest[name][key]
	switch {
	case url == "":
		return served{}
	case strings.HasPrefix(url, builtHere) && !strings.Contains(url, ":"):
		return served{here: url == notServed(w)}
	case p.Lock.Refused[name][refusal(w, url)] != "":
		return served{}
	case near.Commit == "":
		if slices.Contains(w.Prebuilt, url) {
			return served{url: url}
		}
	case near.Back <= w.Nearest && p.sameOutside(w, near.Commit):
		if slices.Contains(p.prebuiltOf(w, near.Commit), url) {
			return served{url: url, near: near}
		}
	}
	return served{}
}

// known says whether the lock says what serves the wheel.
func (s served) known() bool { return s.here || s.url != "" }

// notServed stands in the lock for: no prebuilt source serves this wheel, nor one of so many ancestors.
func notServed(w *hclspec.Wheel) string {
	if w.Nearest == 0 {
		return builtHere
	}
	return fmt.Sprintf("%s ~%d", builtHere, w.Nearest)
}

func (p *resolver) pinWheel(w *hclspec.Wheel, s served) {
	name, key := w.Address.Name, w.Address.Key
	if p.Lock.Wheels == nil {
		p.Lock.Wheels = map[string]map[string]string{}
	}
	byKey := maps.Clone(p.Lock.Wheels[name])
	if byKey == nil {
		byKey = map[string]string{}
	}
	byKey[key] = s.url
	if s.here {
		byKey[key] = notServed(w)
	}
	p.Lock.Wheels[name] = byKey
	delete(p.Lock.Nearest[name], key)
	if s.near.Commit == "" {
		return
	}
	if p.Lock.Nearest == nil {
		p.Lock.Nearest = map[string]map[string]hclspec.NearLock{}
	}
	if p.Lock.Nearest[name] == nil {
		p.Lock.Nearest[name] = map[string]hclspec.NearLock{}
	}
	p.Lock.Nearest[name][key] = s.near
}
