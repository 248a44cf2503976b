//go:build linux

package images_test

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/apptainer/images"
)

// Jobs that begin on a node at the same time pull their image once. A pull removes half-unpacked files of a killed
// one.
func TestJobsOfANodeBringAnImageOnce(t *testing.T) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	_ = w.WriteHeader(&tar.Header{Name: "word", Mode: 0o600, Size: 5})
	_, _ = w.Write([]byte("word\n"))
	_ = w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := layer.Digest()
	var sent atomic.Int32
	all := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, digest.String()) {
			sent.Add(1)
			time.Sleep(50 * time.Millisecond) // the others ask meanwhile
		}
		all.ServeHTTP(w, r)
	}))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/some/image"
	name := containertest.Push(t, repository, img)
	dir := t.TempDir()
	left := filepath.Join(dir, "root-1", "sub")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := images.Store{Dir: dir, Host: executor.NewHost(executor.HostOptions{}),
				Environ: []string{"PATH=" + os.Getenv("PATH")}}
			i, err := s.Pull(t.Context(), repository, name, "", func(string) {})
			if err != nil {
				t.Error(err)
			} else if _, err := os.Stat(filepath.Join(dir, i.Root, "word")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := sent.Load(); n != 1 {
		t.Errorf("the layer was sent %d times", n)
	}
	if roots, _ := filepath.Glob(filepath.Join(dir, "root-*")); len(roots) != 1 || roots[0] == filepath.Dir(left) {
		t.Errorf("left: %q", roots)
	}
}
