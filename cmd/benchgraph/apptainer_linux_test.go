package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/executor/apptainer"
)

// TestApptainer runs the stories below testdata/apptainer, without Docker. BENCHGRAPH_VAR_tools is an image of a
// registry, with busybox.
func TestApptainer(t *testing.T) {
	if apptainer.Find(containertest.Environ()) == "" || os.Getuid() == 0 {
		t.Skip("no Apptainer, or root: container/containertest/engines/run apptainer brings one")
	}
	params := scriptParams("testdata/apptainer")
	tools := published(t)
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		env.Setenv("BENCHGRAPH_VAR_tools", tools)
		return setup(env)
	}
	testscript.Run(t, params)
}

// published puts busybox into a registry, and returns its name there, with the digest.
func published(t *testing.T) string {
	t.Helper()
	images, tools, _ := registryWithTools(t)
	server := httptest.NewServer(images)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + tools
}

// registryWithTools returns a registry that has busybox, the name of the image in it with the digest, and the digest of
// the image's layer.
func registryWithTools(t testing.TB) (images http.Handler, name, layer string) {
	t.Helper()
	files := containertest.BusyboxFiles(t)
	all, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := all.Digest()
	img, err := mutate.AppendLayers(empty.Image, all)
	if err == nil {
		img, err = mutate.Config(img, v1.Config{Env: []string{"PATH=/bin"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	images = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(images)
	defer server.Close()
	const repository = "/tools"
	pushed := containertest.Push(t, strings.TrimPrefix(server.URL, "http://")+repository+":1", img)
	return images, repository + "@" + pushed, digest.String()
}
