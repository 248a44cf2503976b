package pin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/distribution/reference"
	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/image/inventory"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/tasks"
)

// wantedImage is the name of an image, and its position in the file.
type wantedImage struct {
	name string
	at   hcl.Range
}

// missingImages returns the names of images that the lock does not pin, each once.
func (p *Resolver) missingImages(ctx context.Context) ([]wantedImage, hcl.Diagnostics) {
	var missing []wantedImage
	var diags hcl.Diagnostics
	seen := map[string]bool{}
	want := func(name string, at hcl.Range) {
		if name != "" && !seen[name] && tasks.DigestOf(p.Lock, name) == "" {
			seen[name] = true
			missing = append(missing, wantedImage{name, at})
		}
	}
	for i := range p.Spec.Images {
		s := &p.Spec.Images[i]
		want(s.From, s.FromRange)
		if s.Build == nil {
			continue
		}
		build, err := p.ReadBuild(ctx, s.Build, p.OwnFiles())
		if err != nil {
			diags = append(diags, problem(s.Build.Range, "Build context cannot be read", err.Error()))
			continue
		}
		for _, name := range build.Bases {
			want(name, s.Build.Range)
		}
	}
	return missing, diags
}

// resolveImages finds the images that the names in the file and in Dockerfiles mean. If neither an engine nor a
// registry can tell, nodes that need the image are blocked, and the next plan asks again.
func (p *Resolver) resolveImages(ctx context.Context) (bool, hcl.Diagnostics) {
	p.Unresolved = map[string]tasks.UnknownImage{}
	missing, diags := p.missingImages(ctx)
	if len(missing) == 0 || diags.HasErrors() {
		return false, diags
	}
	if p.Locked {
		return false, append(diags, incomplete(missing[0].at, "Image %s is not pinned in the lock file",
			missing[0].name))
	}
	fmt.Fprintf(p.Progress, "resolving images that are not pinned: %d\n", len(missing))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(8)
	changed := false
	var unanswered []wantedImage
	for _, w := range missing {
		g.Go(func() error {
			pin, open, err := p.resolveImage(ctx, w.name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				// a registry's error begins with the name, an engine's does not
				why := strings.TrimPrefix(err.Error(), w.name+": ")
				p.Unresolved[w.name] = tasks.UnknownImage{
					Why: fmt.Sprintf("image %s is not known: %s", w.name, why), Open: open}
				if open {
					unanswered = append(unanswered, w)
					return nil
				}
				d := problem(w.at, "Image cannot be resolved",
					fmt.Sprintf("%s: %s. What needs it is blocked; the next plan asks again.", w.name, why))
				d.Severity = hcl.DiagWarning
				diags = append(diags, d)
				return nil
			}
			if p.Lock.Images == nil {
				p.Lock.Images = map[string]lockfile.Image{}
			}
			p.Lock.Images[w.name] = lockfile.Image{Digest: pin.Digest, Size: pin.Size, Requires: pin.Requires}
			changed = true
			return nil
		})
	}
	_ = g.Wait() // no function returns an error: failures are in diags
	if ctx.Err() != nil {
		return changed, append(diags, problem(missing[0].at, "Image cannot be resolved", context.Cause(ctx).Error()))
	}
	slices.SortFunc(diags, func(a, b *hcl.Diagnostic) int { return strings.Compare(a.Detail, b.Detail) })
	return changed, append(diags, p.unansweredImages(unanswered)...)
}

// unansweredImages returns one warning for all images about which no engine or registry could be asked.
func (p *Resolver) unansweredImages(list []wantedImage) hcl.Diagnostics {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b wantedImage) int { return strings.Compare(a.name, b.name) })
	others := ""
	if n := len(list) - 1; n > 0 {
		others = fmt.Sprintf(" The same holds for %d more.", n)
	}
	d := problem(list[0].at, "Image cannot be resolved",
		fmt.Sprintf("Unverified: %s.%s Nodes that need such an image are blocked here; the next plan asks again.",
			p.Unresolved[list[0].name].Why, others))
	d.Severity = hcl.DiagWarning
	return hcl.Diagnostics{d}
}

// resolveImage finds the image of a name. open reports that nobody could be asked, so that the error is no answer.
func (p *Resolver) resolveImage(ctx context.Context, name string) (pin container.Pin, open bool, err error) {
	if p.Engine == nil {
		return container.Pin{}, true, inventory.ErrNoEngine
	}
	_, err = p.Engine.Image(ctx, name)
	if _, away := errors.AsType[*container.Unavailable](err); away && len(p.Others()) == 0 {
		return container.Pin{}, true, err // it may have the image; nodes that run as jobs ask the registry
	} else if !away && !container.IsNoImage(err) {
		pin, err = p.Engine.Resolve(ctx, name) // the engine has it, or returns why it cannot tell
		return pin, p.Lacks[false](ctx) != "", err
	} else if p.Offline {
		return container.Pin{}, true,
			fmt.Errorf("%w, and its registry is not asked: that does benchgraph plan without -offline", err)
	}
	parsed, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		pin, err = p.Engine.Resolve(ctx, name)
		return pin, false, err
	}
	err = p.Asker.Ask(ctx, reference.Domain(parsed), func(ctx context.Context) (bool, error) {
		var err error
		pin, err = p.Engine.Resolve(ctx, name)
		failed, ok := errors.AsType[*registry.Error](err)
		return !ok || !failed.Passing(), err
	})
	if unverified, ok := errors.AsType[*download.Unverified](err); ok {
		return pin, true, unverified.Err
	}
	return pin, false, err
}
