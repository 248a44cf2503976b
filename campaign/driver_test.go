package campaign_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/preflight"
)

// The driver is compared with the CUDA of an image before the image is fetched, by the image's configuration. The lock
// keeps the requirement, so a later plan needs no registry. If the lock has none, the engine is asked.
func TestAPlanComparesTheDriverWithTheConfigurationOfTheImage(t *testing.T) {
	t.Parallel()
	const requires = "cuda>=12.4 brand=nvidia,driver>=470,driver<471"
	s, ref, _ := inRegistry(t, v1.Config{Env: []string{"PATH=/bin", "CUDA_VERSION=12.4.1",
		"NVIDIA_REQUIRE_CUDA=" + requires}})
	s.write("benchmarks.hcl", strings.NewReplacer("REF", ref).Replace(`
image "WORD" { from = "REF" }
commit "c" {}
variant "base" { baseline = true }
benchmark "speed" {
  for_each = candidates
  image    = image.WORD
  command  = "true"
  gpus { count = 1 }
  metrics {
    metric "items" {
      match  = "([0-9.]+)"
      better = "higher"
    }
  }
}
`))
	drivers := func(version, cuda string) (found []preflight.Finding) {
		t.Helper()
		diags := s.openAs(func(_ context.Context, p *campaign.Project) {
			for _, f := range p.Preflight() {
				if f.Check == preflight.Driver {
					found = append(found, f)
				}
			}
		}, func(ctx context.Context, c campaign.Config, l *lockfile.Lock) (*campaign.Project, hcl.Diagnostics) {
			c.GPUs = gpu.DriverOf([]gpu.Device{{UUID: "GPU-0", Name: "H100", Memory: 1 << 30, Driver: version,
				CUDA: cuda, Brand: "nvidia"}}, nil)
			return campaign.Open(ctx, c, l)
		})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return found
	}
	driver := func(version, cuda string) preflight.Finding {
		t.Helper()
		found := drivers(version, cuda)
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		return found[0]
	}
	if f := driver("535.104.05", "12.2"); f.Status != preflight.Warn || !strings.Contains(f.Evidence, "cuda>=12.4") ||
		!strings.Contains(f.Evidence, "driver 535.104.05 with CUDA 12.2") {
		t.Errorf("%+v", f)
	}
	pinned := s.lock.Images[ref]
	want := map[string]string{"CUDA_VERSION": "12.4.1", "NVIDIA_REQUIRE_CUDA": requires}
	if !maps.Equal(pinned.Requires, want) {
		t.Errorf("pinned: %+v", pinned)
	}
	s.offline = true
	for version, cuda := range map[string]string{"550.54.15": "12.4", "470.82.01": "11.4"} {
		if f := driver(version, cuda); f.Status != preflight.OK {
			t.Errorf("%+v", f)
		}
	}

	// Only the base image of a Dockerfile's last stage is compared.
	plain := s.read("benchmarks.hcl")
	s.write("benchmarks.hcl", strings.ReplaceAll(plain, `{ from = "`+ref+`" }`, `{
  build {
    context    = "image"
    dockerfile = "Dockerfile"
  }
}`))
	s.write("image/Dockerfile", "FROM "+ref+" AS devel\nFROM devel\n")
	if f := driver("535.104.05", "12.2"); f.Status != preflight.Warn || !strings.Contains(f.Evidence, ref+" requires") {
		t.Errorf("%+v", f)
	}
	s.write("image/Dockerfile", "FROM "+ref+" AS devel\nFROM scratch\nCOPY --from=devel / /\n")
	if found := drivers("535.104.05", "12.2"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	s.write("benchmarks.hcl", plain)

	// A container whose own variables disable the comparison starts everywhere.
	s.write("benchmarks.hcl", strings.ReplaceAll(plain, "gpus {", "env = { NVIDIA_DISABLE_REQUIRE = \"1\" }\n  gpus {"))
	if found := drivers("535.104.05", "12.2"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	s.write("benchmarks.hcl", plain)

	// The lock has no requirement, and the engine has the image by now.
	if _, err := s.engine.Pull(t.Context(), ref, pinned.Digest, nil); err != nil {
		t.Fatal(err)
	}
	s.lock.Images[ref] = lockfile.Image{Digest: pinned.Digest, Size: pinned.Size}
	if f := driver("535.104.05", "12.2"); f.Status != preflight.Warn {
		t.Errorf("%+v", f)
	}

	// The image is only in the engine.
	local := ref[:strings.IndexByte(ref, '/')] + "/local/" + s.word + ":v1"
	containertest.Tag(t, s.engine, pinnedRef(ref, pinned.Digest), local)
	t.Cleanup(func() { containertest.RemoveImage(t, s.engine, local) })
	s.write("benchmarks.hcl", strings.ReplaceAll(s.read("benchmarks.hcl"), ref, local))
	if f := driver("535.104.05", "12.2"); f.Status != preflight.Warn || len(s.lock.Images[local].Requires) != 2 {
		t.Errorf("%+v, %+v", f, s.lock.Images[local])
	}
}

// pinnedRef names an image by its digest.
func pinnedRef(ref, digest string) string { return strings.TrimSuffix(ref, ":v1") + "@" + digest }
