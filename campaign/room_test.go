package campaign_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/engine"
)

// narrow is a story on an engine with a disk of its own, with images in a registry that counts requests.
type narrow struct {
	*imaging
	host   string // of the registry, as the engine is told
	direct string // of the registry itself
	shared v1.Layer

	mu   sync.Mutex
	sent map[string]int // by path: manifests and layers that were asked for
}

// onDisk begins a story on an engine whose disk has so many MiB.
func onDisk(t *testing.T, mib int64) *narrow {
	t.Helper()
	t.Parallel()
	n := &narrow{imaging: &imaging{story: tell(t, nil)}, sent: map[string]int{}}
	d := containertest.NewDaemon(t, containertest.DaemonOptions{Root: containertest.Disk(t, mib<<20)})
	n.engine = d.Engine()
	n.direct = containertest.NewRegistry(t).Host
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: n.direct})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			n.mu.Lock()
			n.sent[r.URL.Path]++
			n.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	n.host = strings.TrimPrefix(server.URL, "http://")
	n.shared = layerOf(t, containertest.BusyboxFiles(t))
	return n
}

// layerOf makes a layer of a tar, not compressed: compression takes most of the time of a test under the race detector.
func layerOf(t testing.TB, files []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithCompressionLevel(gzip.NoCompression))
	must(t, err)
	return l
}

// publish puts an image into the registry: busybox, which all images share, and so many MiB of its own.
func (n *narrow) publish(tag string, mib int) {
	n.t.Helper()
	seed := [32]byte{}
	copy(seed[:], tag)
	random := make([]byte, mib<<20)
	_, _ = rand.NewChaCha8(seed).Read(random)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(n.t, w.WriteHeader(&tar.Header{Name: "data", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(random))}))
	_, _ = w.Write(random)
	must(n.t, w.Close())
	publish(n.t, n.direct+"/campaign:"+tag, v1.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}}, n.shared,
		layerOf(n.t, out.Bytes()))
}

// publish puts an image into a registry and returns its digest.
func publish(t testing.TB, at string, c v1.Config, layers ...v1.Layer) string {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	must(t, err)
	img, err = mutate.Config(img, c)
	must(t, err)
	config, err := img.ConfigFile()
	must(t, err)
	config.OS, config.Architecture = "linux", "amd64"
	img, err = mutate.ConfigFile(img, config)
	must(t, err)
	return containertest.Push(t, at, img)
}

// own returns all images of benchgraph in the engine.
func (n *narrow) own() (made, brought []container.Image) {
	n.t.Helper()
	made, err := n.engine.Images(n.t.Context())
	must(n.t, err)
	brought, err = n.engine.Brought(n.t.Context())
	must(n.t, err)
	return made, brought
}

// pulls returns how often each layer that is not shared was sent.
func (n *narrow) pulls() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	shared, err := n.shared.Digest()
	must(n.t, err)
	var counts []int
	for path, count := range n.sent {
		if strings.Contains(path, "/blobs/") && !strings.HasSuffix(path, shared.String()) {
			counts = append(counts, count)
		}
	}
	return counts
}

// commits is the file of a campaign: an image and three blocks of each commit.
func (n *narrow) commits(count int) string {
	var keys []string
	for i := range count {
		keys = append(keys, strconv.Quote(fmt.Sprintf("c%02d", i)))
	}
	return strings.NewReplacer("HOST", n.host, "KEYS", strings.Join(keys, ", ")).Replace(`
image "c" {
  for_each = toset([KEYS])
  from     = "HOST/campaign:${each.key}"
}
benchmark "speed" {
  for_each = toset([KEYS])
  image    = image.c[each.key]
  command  = "test -s /data && echo work done: 1.5 items/s"
  quiet    = true
  design {
    samples = 3
    max     = 3
  }
  metrics {
    metric "items" {
      match  = "work done: ([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
`)
}

// throughDisk applies a campaign whose commits have images of 24 MiB each, on a disk without room for three of them.
func throughDisk(t *testing.T, commits int) {
	n := onDisk(t, 118)
	n.publish("foreign", 4)
	containertest.Pull(t, n.engine, n.direct+"/campaign:foreign")
	for i := range commits {
		n.publish(fmt.Sprintf("c%02d", i), 24)
	}
	n.write("benchmarks.hcl", n.commits(commits))
	applied := n.apply()
	if r := applied.Result; r.Failed > 0 || r.Blocked > 0 || r.NotRun > 0 {
		for _, f := range r.Failures {
			t.Errorf("%s: %+v", f.Address, f.Failure)
			text, _ := os.ReadFile(f.Log)
			t.Logf("%s", text)
		}
		t.Fatalf("%+v", r)
	}
	if applied.Waves > 2 {
		t.Errorf("%d waves: images went before they were used", applied.Waves)
	}
	for _, count := range n.pulls() {
		if count > 2 { // the configuration of an image is asked for when it is resolved, too
			t.Errorf("sent %d times: %v", count, n.sent)
			break
		}
	}
	if made, brought := n.own(); len(brought) >= commits || len(brought) == 0 {
		t.Errorf("%d images brought and %d made are left", len(brought), len(made))
	}
	if _, err := n.engine.Image(t.Context(), n.direct+"/campaign:foreign"); err != nil {
		t.Errorf("what belongs to somebody else: %v", err)
	}
	if n.apply(); len(n.ran()) > 0 {
		t.Errorf("the second apply ran %q", n.ran())
	}
}

func TestACampaignGoesThroughADiskForTwoImages(t *testing.T) { throughDisk(t, 5) }

// The plan reports an image that can never fit, with a remedy; the rest goes on.
func TestAPlanRefusesBuildsThatNeverFit(t *testing.T) {
	n := onDisk(t, 64)
	n.publish("c00", 2)
	n.publish("c01", 70)
	n.write("benchmarks.hcl", n.commits(2))
	told := func() map[string]string {
		t.Helper()
		reasons := map[string]string{}
		n.open(func(ctx context.Context, p *campaign.Project) {
			plan, err := p.Plan(ctx, campaign.PlanOptions{})
			must(t, err)
			for i := range plan.Steps {
				if s := &plan.Steps[i]; s.Action == engine.Blocked {
					reasons[s.Node.Address] = s.Reason
				}
			}
		})
		return reasons
	}
	reasons := told()
	if why := reasons[`image.c["c01"]`]; len(reasons) == 0 || !strings.HasPrefix(why, `needs at least 72.`) ||
		!strings.Contains(why, "docker system df") {
		t.Errorf("%q", reasons)
	}
	applied := n.apply()
	if _, ok := reasons[`image.c["c00"]`]; ok || applied.Result.Failed > 0 || applied.Result.Blocked != len(reasons) ||
		!slices.Contains(n.ran(), `trial.speed["c00#1"]`) {
		t.Errorf("%+v, %q", applied.Result, n.ran())
	}
	// the layer of the first image, and the configurations of both
	if n.sent["/v2/campaign/manifests/c01"] == 0 || len(n.pulls()) != 3 {
		t.Errorf("sent: %v", n.sent)
	}
	n.disk = 1 << 20
	n.write("benchmarks.hcl", strings.ReplaceAll(n.commits(2), "1.5 items", "2.5 items"))
	if why := told()[`image.c["c01"]`]; !strings.Contains(why, "BENCHGRAPH_IMAGE_DISK is 1MiB") {
		t.Errorf("%q", why)
	}
}

// An image that somebody removes before its use is made anew within the same apply.
func TestAnImageThatVanishesIsMadeAnew(t *testing.T) {
	n := onDisk(t, 118)
	n.publish("c00", 2)
	n.write("benchmarks.hcl", n.commits(1))
	n.when = func(e engine.Event) {
		if e.Type == engine.NodeDone && e.Address == `trial.speed["c00#1"]` {
			n.when = nil
			made, _ := n.own()
			for _, img := range made {
				must(t, n.engine.RemoveImage(t.Context(), img.ID))
			}
		}
	}
	applied := n.apply()
	if r := applied.Result; r.Failed > 0 || r.Blocked > 0 {
		t.Errorf("%+v", r)
	}
	if ran := n.ran(); n.when != nil || len(slices.DeleteFunc(ran, func(at string) bool {
		return at != `image.c["c00"]`
	})) != 2 {
		t.Errorf("ran %q", ran)
	}
}
