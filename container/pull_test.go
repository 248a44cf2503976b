package container_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/container/registry"
)

// published is an image in a registry.
type published struct {
	ref    string // HOST/REPOSITORY:TAG
	digest string // of what the tag names
	size   int64  // bytes of the layers, compressed
	layers []string
}

// platformImage is an image of random layers for a platform.
func platformImage(t *testing.T, arch string, layers int) v1.Image {
	t.Helper()
	img, err := random.Image(64<<10, int64(layers))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", arch
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

// publish puts an image of three layers into a registry, under a name that no other test uses.
func publish(t *testing.T, host string) published {
	t.Helper()
	img := platformImage(t, "amd64", 3)
	p := published{ref: host + "/" + repository(t) + ":v1"}
	p.digest = containertest.Push(t, p.ref, img)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range m.Layers {
		p.size += l.Size
		p.layers = append(p.layers, l.Digest.String())
	}
	return p
}

func repository(t *testing.T) string {
	return "test/" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
}

// dropped removes what a test pulled.
func dropped(t *testing.T, e *container.Engine, ref string) {
	t.Cleanup(func() {
		if err := e.RemoveImage(context.Background(), ref); err != nil {
			t.Error(err)
		}
	})
}

func TestPullBringsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	shared := containertest.Engine(t)
	e := open(t, shared, nil)
	f := newFaults(t)
	p := publish(t, f.Host)
	pin, err := e.Resolve(t.Context(), p.ref)
	if err != nil || pin.Digest != p.digest || pin.Size != p.size {
		t.Fatalf("%+v, %v; want %+v", pin, err, p)
	}
	var told []container.Progress
	img, err := e.Pull(t.Context(), p.ref, pin.Digest, func(p container.Progress) { told = append(told, p) })
	if err != nil {
		t.Fatal(err)
	}
	pinned := strings.TrimSuffix(p.ref, ":v1") + "@" + p.digest
	dropped(t, e, pinned)
	if !slices.Contains(img.Digests, pinned) || len(img.Layers) != 3 || len(img.Tags) != 0 {
		t.Errorf("%+v", img)
	}
	last := told[len(told)-1]
	if last.Bytes != p.size || last.Total != p.size || last.Phase != "unpacking" && last.Phase != "fetching" {
		t.Errorf("%+v, of %d bytes", last, p.size)
	}
	for i := range told {
		if told[i].Bytes > p.size || i > 0 && told[i].Bytes < told[i-1].Bytes {
			t.Errorf("%+v after %+v", told[i], told[max(0, i-1)])
		}
	}

	// From now on the registry is not asked, neither by digest nor by what is pinned.
	f.set(times(always, nil, status(500, "UNKNOWN")))
	again, err := e.Pull(t.Context(), p.ref, pin.Digest, nil)
	if err != nil || again.ID != img.ID {
		t.Error(again, err)
	}
	local, err := e.Resolve(t.Context(), pinned)
	if err != nil || local.Digest != p.digest || local.Size != 0 {
		t.Errorf("%+v, %v", local, err)
	}
	if n := f.count(""); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// impatient is an engine that leaves it to us to try again.
func impatient(t *testing.T) *container.Engine {
	t.Helper()
	return containertest.NewDaemon(t, containertest.DaemonOptions{Args: []string{"--max-download-attempts=1"}}).Engine()
}

// The faults of a registry that pass.
func TestPullOutlivesTemporaryErrors(t *testing.T) {
	t.Parallel()
	shared := impatient(t)
	for name, c := range map[string]func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool{
		"a layer breaks off": func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(2, []string{"GET", "/blobs/" + p.layers[1]}, f.breakOff(1000))
		},
		"the manifest breaks off": func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(2, []string{"GET", "/manifests/"}, f.breakOff(100))
		},
		"asked too often for the manifest": func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(2, []string{"/manifests/"}, status(429, "TOOMANYREQUESTS", "Retry-After", "0"))
		},
		"asked too often for a layer": func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(2, []string{"GET", "/blobs/" + p.layers[1]},
				status(429, "TOOMANYREQUESTS", "Retry-After", "0"))
		},
		"a fault of its own": func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(2, []string{"/manifests/"}, status(503, "UNAVAILABLE"))
		},
		"a fault at a layer": func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(2, []string{"GET", "/blobs/" + p.layers[2]}, status(502, "UNKNOWN"))
		},
		"no answer at first": func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(1, []string{"GET", "/v2/"}, hang)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, shared, nil)
			f := newFaults(t)
			p := publish(t, f.Host)
			f.set(c(f, p))
			img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
			if err != nil {
				t.Fatal(err)
			}
			dropped(t, e, strings.TrimSuffix(p.ref, ":v1")+"@"+p.digest)
			if len(img.Layers) != 3 {
				t.Errorf("%+v", img)
			}
			// A whole layer is not fetched again.
			if n := f.count("GET", "/blobs/"+p.layers[0]); n != 1 && !strings.Contains(name, "layer") {
				t.Errorf("the first layer was fetched %d times", n)
			}
		})
	}
}

// The faults of a registry that do not pass are told as what they are, with what can be done, and at once.
func TestPullSaysWhyItCannot(t *testing.T) {
	t.Parallel()
	shared := impatient(t)
	for name, c := range map[string]struct {
		fault  func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool
		reason registry.Reason
		says   string
	}{
		"no challenge": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, nil, status(401, "UNAUTHORIZED"))
		}, registry.Denied, "docker login HOST"},
		"basic": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, nil, status(401, "UNAUTHORIZED", "WWW-Authenticate", `Basic realm="r"`))
		}, registry.Denied, "docker login HOST"},
		"forbidden": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"/manifests/"}, status(403, "DENIED"))
		}, registry.Denied, "docker login HOST"},
		"no such image": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"/manifests/"}, status(404, "MANIFEST_UNKNOWN"))
		}, registry.Missing, "mistake in the name or the tag"},
		"another manifest": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"GET", "/manifests/"}, f.other)
		}, registry.Damaged, "something else"},
		"another layer": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"GET", "/blobs/" + p.layers[1]}, f.other)
		}, registry.Damaged, "something else"},
		"never a manifest": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"/manifests/"}, status(500, "UNKNOWN"))
		}, registry.Failing, "500 Internal Server Error"},
		"never again": {func(f *faults, p published) func(http.ResponseWriter, *http.Request) bool {
			return times(always, []string{"/manifests/"}, status(429, "TOOMANYREQUESTS"))
		}, registry.Throttled, "429"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, shared, nil)
			f := newFaults(t)
			p := publish(t, f.Host)
			f.set(c.fault(f, p))
			img, err := e.Pull(t.Context(), p.ref, p.digest, nil)
			refused, ok := errors.AsType[*registry.Error](err)
			if !ok {
				t.Fatalf("%+v, %v", img, err)
			}
			if refused.Reason != c.reason || !strings.Contains(err.Error(),
				strings.ReplaceAll(c.says, "HOST", f.Host)) || !strings.Contains(err.Error(), p.digest) {
				t.Errorf("%s: %v", refused.Reason, err)
			}
			if n := f.count("GET", "/manifests/"); !refused.Passing() && n > 3 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// A pull that is cancelled ends at once, although the engine may wait on for what it has asked for.
func TestPullIsCancelled(t *testing.T) {
	t.Parallel()
	e := open(t, containertest.Engine(t), nil)
	f := newFaults(t)
	p := publish(t, f.Host)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	f.set(times(1, []string{"GET", "/blobs/" + p.layers[1]}, func(w http.ResponseWriter, r *http.Request) {
		cancel(cause)
		hang(w, r)
	}))
	if img, err := e.Pull(ctx, p.ref, p.digest, nil); !errors.Is(err, cause) {
		t.Errorf("%+v, %v", img, err)
	}
}

// Credentials are those of config.json and of the helpers that it names; they reach only their own registry.
func TestPullWithCredentials(t *testing.T) {
	shared := containertest.Engine(t)
	f := newFaults(t)
	p := publish(t, f.Host)
	const user, secret = "mallory", "s3cr3t-of-the-test"
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		if u, s, _ := r.BasicAuth(); u == user && s == secret {
			return false
		}
		status(401, "UNAUTHORIZED", "WWW-Authenticate", `Basic realm="r"`)(w, r)
		return true
	})
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
	helpers := t.TempDir()
	for name, script := range map[string]string{
		"test": fmt.Sprintf(`[ "$1 $(cat)" = "get %s" ] && echo '{"Username": %q, "Secret": %q}'`,
			f.Host, user, secret),
		"empty":  "echo credentials not found in native keychain; exit 1",
		"broken": "echo the keychain is locked; exit 1",
		"torn":   fmt.Sprintf(`echo '{"Username": %q, "Secret": %q}'; exit 1`, user, secret),
	} {
		program := filepath.Join(helpers, "docker-credential-"+name)
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", helpers+":"+os.Getenv("PATH"))
	for name, c := range map[string]struct {
		config string
		says   string // empty: it goes well
	}{
		"right":   {fmt.Sprintf(`{"auths": {"http://%s/v2/": {"auth": %q}}}`, f.Host, auth), ""},
		"other":   {fmt.Sprintf(`{"auths": {"other.example": {"auth": %q}}}`, auth), "with an account that may"},
		"helper":  {fmt.Sprintf(`{"auths": {%q: {}}, "credsStore": "test"}`, f.Host), ""},
		"its own": {fmt.Sprintf(`{"credsStore": "desktop", "credHelpers": {%q: "test"}}`, f.Host), ""},
		"not its": {fmt.Sprintf(`{"credsStore": "empty", "auths": {%q: {"auth": %q}}}`, f.Host, auth), ""},
		"no helper": {fmt.Sprintf(`{"auths": {%q: {}}, "credsStore": "desktop"}`, f.Host),
			"docker-credential-desktop is not installed"},
		"path":     {`{"credsStore": "x/../../test"}`, "is not the name of a program"},
		"failing":  {`{"credsStore": "broken"}`, "the keychain is locked"},
		"torn":     {`{"credsStore": "torn"}`, "docker-credential-torn: error getting credentials"},
		"damaged":  {`{"auths": {"` + secret, "not the JSON that docker login writes"},
		"no value": {fmt.Sprintf(`{"auths": {%q: {"auth": "!%s"}}}`, f.Host, secret), "not the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			e := open(t, shared, map[string]string{"DOCKER_CONFIG": dir})
			_, err := e.Pull(t.Context(), p.ref, p.digest, nil)
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				dropped(t, e, strings.TrimSuffix(p.ref, ":v1")+"@"+p.digest)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), auth)) {
				t.Errorf("tells the secret: %v", err)
			}
		})
	}
}

func TestResolvePlatform(t *testing.T) {
	t.Parallel()
	shared := containertest.Engine(t)
	e := open(t, shared, nil)
	f := newFaults(t)
	ours, other := platformImage(t, "amd64", 2), platformImage(t, "s390x", 3)
	add := func(img v1.Image, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux",
			Architecture: arch}}}
	}
	for tag, index := range map[string]v1.ImageIndex{
		"both":  mutate.AppendManifests(empty.Index, add(other, "s390x"), add(ours, "amd64")),
		"other": mutate.AppendManifests(empty.Index, add(other, "s390x")),
	} {
		ref, err := name.ParseReference(f.Host + "/" + repository(t) + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.WriteIndex(ref, index); err != nil {
			t.Fatal(err)
		}
		pin, err := e.Resolve(t.Context(), ref.String())
		if tag == "other" {
			if refused, ok := errors.AsType[*registry.Error](err); !ok ||
				refused.Reason != registry.Missing || !strings.Contains(err.Error(), "not for this platform") {
				t.Error(pin, err)
			}
			continue
		}
		want, _ := index.Digest()
		m, _ := ours.Manifest()
		if err != nil || pin.Digest != want.String() || pin.Size != m.Layers[0].Size+m.Layers[1].Size {
			t.Errorf("%+v, %v", pin, err)
		}
		img, err := e.Pull(t.Context(), ref.String(), pin.Digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		dropped(t, e, ref.Context().String()+"@"+pin.Digest)
		if len(img.Layers) != 2 {
			t.Errorf("%+v", img)
		}
	}
}

func TestResolveWithoutARegistry(t *testing.T) {
	t.Parallel()
	shared := containertest.Engine(t)
	e := open(t, shared, nil)
	id := containertest.Busybox(t, e)
	pin, err := e.Resolve(t.Context(), id)
	if err != nil || pin.Digest != id || pin.Size != 0 {
		t.Errorf("%+v, %v", pin, err)
	}
	_, err = e.Resolve(t.Context(), "127.0.0.1:1/some/image")
	if refused, ok := errors.AsType[*registry.Error](err); !ok || refused.Reason != registry.Unreachable ||
		!strings.Contains(err.Error(), "offline") {
		t.Error(err)
	}
	var missing *container.NoImage
	if _, err = e.Resolve(t.Context(), "sha256:"+strings.Repeat("0", 64)); !errors.As(err, &missing) {
		t.Error(err)
	}
	if _, err = e.Resolve(t.Context(), "No/Such Reference"); err == nil {
		t.Error("no error")
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the test is over")
	cancel(cause)
	if _, err = e.Resolve(gone, "127.0.0.1:1/some/image"); !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
