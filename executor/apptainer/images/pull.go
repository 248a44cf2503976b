//go:build linux

package images

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Pull fetches an image from a registry by its digest. Each part is checked against the digest in its manifest. The
// ID is the same as Docker's. Fetched parts stay until the image is complete.
func (s *Store) Pull(ctx context.Context, repository, digest, auth string, say func(string)) (*Image, error) {
	if !strings.HasPrefix(digest, "sha256:") {
		return nil, Cannot("it pulls images only by digest, and %s:%s is a tag", repository, digest)
	}
	full := repository + "@" + digest
	ref, err := name.NewDigest(full, options(repository)...)
	if err != nil {
		return nil, err
	}
	login, err := registry.DecodeAuthConfig(auth)
	if err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, func() { say("Waiting for another process that pulls an image") })
	if err != nil {
		return nil, err
	}
	defer unlock()
	if i, err := s.Find(full); err == nil { // the other process has pulled the same image
		return i, nil
	}
	say("Asking for " + full)
	remoteImage, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuth(authn.FromConfig(authn.AuthConfig{
		Username: login.Username, Password: login.Password, IdentityToken: login.IdentityToken,
		RegistryToken: login.RegistryToken})),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return nil, err
	}
	config, err := remoteImage.RawConfigFile()
	if err != nil {
		return nil, err
	}
	blobs := filepath.Join(s.Dir, "blobs-"+digest[len("sha256:"):])
	local, err := fetched(remoteImage, blobs)
	if err != nil {
		return nil, err
	}
	say("Unpacking " + full)
	files := mutate.Extract(local)
	defer files.Close()
	root, size, err := s.unpack(ctx, files)
	if err != nil {
		return nil, err
	}
	i, err := named(config, root, size)
	if err != nil {
		return nil, err
	}
	if old, err := s.Find(i.ID); err == nil { // the image is known by another name
		if err := fs.RemoveTree(filepath.Join(s.Dir, root)); err != nil {
			return nil, err
		}
		i.Root = old.Root
	}
	i.Digests = []string{full}
	return i, errors.Join(s.Keep(i), os.RemoveAll(blobs))
}

// lock keeps other processes of this user from pulling images until unlock is called. On file systems without locks,
// it excludes nobody.
func (s *Store) lock(ctx context.Context, wait func()) (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for waits := false; ; waits = true {
		err := fs.TryLock(f, fs.Exclusive)
		if err == nil {
			s.sweep()
		}
		if !fs.Held(err) {
			return func() { f.Close() }, nil
		}
		if !waits {
			wait()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sweep removes directories that killed processes left half unpacked. A directory that cannot be removed is left to a
// later sweep.
func (s *Store) sweep() {
	all, err := s.All()
	left, _ := filepath.Glob(filepath.Join(s.Dir, rootPrefix+"*"))
	for _, dir := range left {
		if err == nil && !slices.ContainsFunc(all, func(i *Image) bool { return i.Root == filepath.Base(dir) }) {
			_ = fs.RemoveTree(dir)
		}
	}
}

// options returns how to reach a registry. As in Docker, only registries on this machine are reached without TLS.
func options(repository string) []name.Option {
	host, _, _ := strings.Cut(repository, "/")
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host == "localhost" || err == nil && ip.IsLoopback() {
		return []name.Option{name.Insecure}
	}
	return nil
}

// fetched copies an image into a directory and checks the digest of each part. Parts that are already there are not
// fetched again.
func fetched(from v1.Image, dir string) (v1.Image, error) {
	digest, err := from.Digest()
	if err != nil {
		return nil, err
	}
	to, err := layout.FromPath(dir)
	if err != nil {
		if to, err = layout.Write(dir, empty.Index); err != nil {
			return nil, err
		}
	}
	if err := to.AppendImage(from); err != nil {
		return nil, err
	}
	return to.Image(digest)
}
