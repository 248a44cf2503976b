package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/wheel"
)

// prebuiltTask downloads a wheel that somebody else built, and proves that it was built from its revision.
type prebuiltTask struct {
	downloadTask
	wheel *hclspec.Wheel
	tree  *tree // that the wheel was built from, without a patch; nil: the wheel has no source, and no proof
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
	mirror, err := t.p.Mirror(ctx, t.tree.repo)
	if err != nil {
		return gitFailure(err)
	}
	files, err := mirror.Files(ctx, t.tree.rev)
	if err != nil {
		return gitFailure(err)
	}
	name := filepath.Join(env.Out, download.FileName(t.url))
	if filepath.Ext(name) == ".whl" {
		compared, err := wheel.Prove(name, t.tree.rev, files)
		if refusal, ok := errors.AsType[*wheel.Refusal](err); ok {
			return &engine.Failure{Err: err, Failure: failure.Failure{
				Class: failure.Permanent, Rule: prebuiltRefused, Stage: "fetch", Evidence: refusal.Evidence,
				Message: fmt.Sprintf("%s is no wheel of %s: %s", download.WithoutPassword(t.url), ShortRev(t.tree.rev),
					refusal.Evidence),
				Remedy: "the next source serves, or it is built here; without either, declare a build",
			}}
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Log, "proven: %d files are those of %s\n", compared, ShortRev(t.tree.rev))
	}
	if len(t.wheel.Overlay) == 0 {
		return nil
	}
	return wheel.RecordNames(slices.Collect(maps.Keys(files)), t.wheel.Overlay, env.Out)
}

// prebuiltRefused is the rule of a wheel that was not built from its revision.
const prebuiltRefused = "prebuilt_refused"

// Refusal is the key in the lock for a URL that does not serve a wheel.
func Refusal(w *hclspec.Wheel, url string) string { return url + " " + w.Address.Key }

// Served is the source of a wheel: a prebuilt wheel, perhaps of an ancestor, or a build on this machine.
type Served struct {
	URL  string // empty: unknown, or built here
	Near lockfile.Near
	Here bool // no prebuilt source serves it
}

// ServedBy returns the source of a wheel, by the lock. It ignores a URL that the file no longer names, which may be
// that of another revision, and an ancestor whose tree differs outside of the present overlay.
func (p *Facts) ServedBy(w *hclspec.Wheel) Served {
	name, key := w.Address.Name, w.Address.Key
	url, near := p.Lock.Wheels[name][key], p.Lock.Nearest[name][key]
	switch {
	case url == "":
		return Served{}
	case strings.HasPrefix(url, builtHere) && !strings.Contains(url, ":"):
		return Served{Here: url == NotServed(w)}
	case p.Lock.Refused[name][Refusal(w, url)] != "":
		return Served{}
	case near.Commit == "":
		if slices.Contains(w.Prebuilt, url) {
			return Served{URL: url}
		}
	case near.Back <= w.Nearest && p.sameOutside(w, near.Commit):
		if slices.Contains(p.PrebuiltOf(w, near.Commit), url) {
			return Served{URL: url, Near: near}
		}
	}
	return Served{}
}

// Known reports whether the lock says where the wheel comes from.
func (s Served) Known() bool { return s.Here || s.URL != "" }

// NotServed is the entry in the lock for a wheel that no prebuilt source serves, for itself or for that many ancestors.
func NotServed(w *hclspec.Wheel) string {
	if w.Nearest == 0 {
		return builtHere
	}
	return fmt.Sprintf("%s ~%d", builtHere, w.Nearest)
}

// wheelLookup caches the sources of a Spec.
type wheelLookup struct {
	evaluating sync.Mutex    // held while an expression of the file is evaluated again
	of         *hclspec.Spec // spec of the sources
	sources    map[hclspec.Address]*hclspec.Source
}

// SourceOf returns a source of the file; nil if there is none.
func (p *Facts) SourceOf(a hclspec.Address) *hclspec.Source {
	l := p.wheels
	if l.of != p.Spec {
		l.of, l.sources = p.Spec, map[hclspec.Address]*hclspec.Source{}
		for i := range p.Spec.Sources {
			l.sources[p.Spec.Sources[i].Address] = &p.Spec.Sources[i]
		}
	}
	return l.sources[a]
}

// sameOutside reports whether the lock gives a commit and the wheel's revision the same tree outside of the overlay.
func (p *Facts) sameOutside(w *hclspec.Wheel, commit string) bool {
	src := p.SourceOf(w.Source)
	if src == nil {
		return false
	}
	digests := p.Lock.Repos[src.Repo.Name].Outside[Patterns(w.Overlay)]
	return digests[src.Rev] != "" && digests[src.Rev] == digests[commit]
}

// PrebuiltOf returns the prebuilt sources of a wheel at another revision. It is safe for concurrent use.
func (p *Facts) PrebuiltOf(w *hclspec.Wheel, rev string) []string {
	if w.PrebuiltOf == nil {
		return nil
	}
	p.wheels.evaluating.Lock()
	defer p.wheels.evaluating.Unlock()
	return w.PrebuiltOf(rev)
}

// builtHere is the beginning of a NotServed entry.
const builtHere = "build"

// withReason returns a URL as a plan shows it, with the reason why it was refused.
func withReason(url, why string) string {
	url = download.WithoutPassword(url)
	if why != "" {
		url += " (" + strings.TrimSuffix(why, ".") + ")"
	}
	return url
}

// Unserved returns the wheel that a node downloads, and the URL, if a failure says that the URL does not serve the
// wheel; nil otherwise.
func Unserved(n *engine.Node, f *failure.Failure) (*hclspec.Wheel, string) {
	t, ok := n.Task.(*prebuiltTask)
	if !ok || f.Rule != prebuiltRefused && f.Rule != "download_refused" && f.Rule != "download_too_large" {
		return nil, ""
	}
	return t.wheel, t.url
}

// Patterns returns the patterns of an overlay as the key under which the lock has digests for them.
func Patterns(overlay []string) string { return strings.Join(overlay, " ") }
