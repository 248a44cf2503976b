package containertest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchgraph/benchgraph/container"
)

// RemoveImage removes an image that a test pulled or made, by its name or ID.
func RemoveImage(t testing.TB, e *container.Engine, ref string) {
	t.Helper()
	if err := dial(e.Host()).do(http.MethodDelete, "/images/"+ref+"?noprune=1", nil); err != nil {
		t.Error(err)
	}
}

// Config decodes the configuration of an image into v.
func Config(t testing.TB, e *container.Engine, ref string, v any) {
	t.Helper()
	image := struct{ Config any }{v}
	if err := dial(e.Host()).get("/images/"+ref+"/json", &image); err != nil {
		t.Fatal(err)
	}
}

// Tag gives an image a name, as a user does. Podman takes the tag only beside the repository.
func Tag(t testing.TB, e *container.Engine, id, name string) {
	t.Helper()
	repository, tag := name, ""
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		repository, tag = name[:at], name[at+1:]
	}
	path := "/images/" + id + "/tag?" + url.Values{"repo": {repository}, "tag": {tag}}.Encode()
	if err := dial(e.Host()).do(http.MethodPost, path, nil); err != nil {
		t.Error(err)
	}
}

// Pull pulls an image by a reference with a tag, as a user does.
func Pull(t testing.TB, e *container.Engine, ref string) {
	t.Helper()
	colon := strings.LastIndexByte(ref, ':')
	if err := dial(e.Host()).do(http.MethodPost, "/images/create?"+url.Values{"fromImage": {ref[:colon]},
		"tag": {ref[colon+1:]}}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
}

// Push uploads an image to a registry under a reference, and returns the digest.
func Push(t testing.TB, ref string, img v1.Image) string {
	t.Helper()
	to, err := name.ParseReference(ref)
	if err == nil {
		err = remote.Write(to, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}
