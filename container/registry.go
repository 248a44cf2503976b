package container

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	settings "github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/system"

	"github.com/benchgraph/benchgraph/container/registry"
)

// registries returns a client that asks registries for images of the engine's platform. It converts the kernel's names
// of architectures, which engines use, to Go's, which images use. Without an engine, the platform is this machine's.
func (e *Engine) registries(ctx context.Context) (registry.Client, error) {
	info, err := call(ctx, e, "ask the container engine who it is",
		func(ctx context.Context, a *api) (system.Info, error) {
			return a.Info(ctx)
		})
	if _, away := errors.AsType[*Unavailable](err); away {
		info.OSType, info.Architecture = "linux", runtime.GOARCH
	} else if err != nil {
		return registry.Client{}, err
	}
	c := registry.Client{OS: info.OSType, Arch: info.Architecture, Environ: e.options.Environ,
		Patience: e.options.Patience}
	switch c.Arch {
	case "x86_64":
		c.Arch = "amd64"
	case "aarch64":
		c.Arch = "arm64"
	case "armv7l":
		c.Arch, c.Variant = "arm", "v7"
	case "i686":
		c.Arch = "386"
	}
	c.Insecure = func(host string) bool {
		bare := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			bare = h
		}
		if at, err := netip.ParseAddr(strings.Trim(bare, "[]")); bare == "localhost" || err == nil && at.IsLoopback() {
			return true
		}
		if info.RegistryConfig == nil {
			return false
		}
		if index := info.RegistryConfig.IndexConfigs[host]; index != nil && !index.Secure {
			return true
		}
		ip := net.ParseIP(bare)
		return ip != nil && slices.ContainsFunc(info.RegistryConfig.InsecureRegistryCIDRs,
			func(n *settings.NetIPNet) bool { return n != nil && (*net.IPNet)(n).Contains(ip) })
	}
	return c, nil
}
