package tasks

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

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/docker"
)

// digestOf is the digest that the name of an image means; empty: not known.
func (p *Project) digestOf(name string) string {
	if ref, err := reference.ParseNormalizedNamed(name); err == nil {
		if exact, ok := ref.(reference.Digested); ok {
			return exact.Digest().String()
		}
	}
	return p.Lock.Images[name].Digest
}

// wantedImage is the name of an image in the file, and where.
type wantedImage struct {
	name string
	at   hcl.Range
}

// missingImages are the names of images that nothing pins, each once.
func (p *Project) missingImages(ctx context.Context) ([]wantedImage, hcl.Diagnostics) {
	var missing []wantedImage
	var diags hcl.Diagnostics
	seen := map[string]bool{}
	want := func(name string, at hcl.Range) {
		if name != "" && !seen[name] && p.digestOf(name) == "" {
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
		build, err := p.readBuild(ctx, s.Build, p.ownFiles())
		if err != nil {
			diags = append(diags, problem(s.Build.Range, "Build context cannot be read", err.Error()))
			continue
		}
		for _, name := range build.bases {
			want(name, s.Build.Range)
		}
	}
	return missing, diags
}

// resolveImages finds out which images the names in the file and in Dockerfiles mean. Where neither an engine nor a registry
// can tell, the image is blocked, and asked about again with the next plan.
func (p *Project) resolveImages(ctx context.Context) (bool, hcl.Diagnostics) {
	p.unresolved = map[string]string{}
	missing, diags := p.missingImages(ctx)
	if len(missing) == 0 || diags.HasErrors() {
		return false, diags
	}
	if p.Locked {
		return false, append(diags, problem(missing[0].at, "Lock file is incomplete",
			fmt.Sprintf("Image %s is not pinned in the lock file, and -locked forbids to add it. Run without -locked once and commit the lock file.", missing[0].name)))
	}
	fmt.Fprintf(p.Progress, "resolving images that are not pinned: %d\n", len(missing))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(8)
	changed := false
	for _, w := range missing {
		g.Go(func() error {
			pin, err := p.resolveImage(ctx, w.name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				why := strings.TrimPrefix(err.Error(), w.name+": ") // a registry's error begins with the name, an engine's does not
				p.unresolved[w.name] = fmt.Sprintf("image %s is not known: %s", w.name, why)
				d := problem(w.at, "Image cannot be resolved", fmt.Sprintf("%s: %s. What needs it is blocked; the next plan asks again.", w.name, why))
				d.Severity = hcl.DiagWarning
				diags = append(diags, d)
				return nil
			}
			if p.Lock.Images == nil {
				p.Lock.Images = map[string]hclspec.ImageLock{}
			}
			p.Lock.Images[w.name] = hclspec.ImageLock{Digest: pin.Digest, Size: pin.Size}
			changed = true
			return nil
		})
	}
	_ = g.Wait() // what fails is told above
	if ctx.Err() != nil {
		return changed, append(diags, problem(missing[0].at, "Image cannot be resolved", context.Cause(ctx).Error()))
	}
	slices.SortFunc(diags, func(a, b *hcl.Diagnostic) int { return strings.Compare(a.Detail, b.Detail) })
	return changed, diags
}

func (p *Project) resolveImage(ctx context.Context, name string) (docker.Pin, error) {
	if p.Engine == nil {
		return docker.Pin{}, errNoEngine
	}
	if p.Offline {
		_, err := p.Engine.Image(ctx, name)
		if docker.IsNoImage(err) {
			return docker.Pin{}, fmt.Errorf("%w, and -offline forbids to ask its registry", err)
		}
	}
	return p.Engine.Resolve(ctx, name)
}

var errNoEngine = errors.New("there is no container engine")
