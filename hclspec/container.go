package hclspec

import (
	"maps"
	"math/big"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/zclconf/go-cty/cty"
)

// Options of the container of a server, beyond those that all containers have.

// ulimits reads the limits of a container, by the names that container engines use.
func (r reader) ulimits() map[string]int64 {
	names := []string{"core", "fsize", "memlock", "msgqueue", "nofile", "nproc", "rtprio", "sigpending", "stack"}
	values := r.Map("ulimits", cty.Number, "a map of limits to numbers", "a number")
	limits := make(map[string]int64, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			r.Fail(r.At("ulimits"), "Unknown limit", "The limit %q of a container is not known here.%s", name,
				diag.Choices(name, names))
		}
		if v := values[name]; !v.IsKnown() || v.IsNull() {
			continue
		}
		n, accuracy := values[name].AsBigFloat().Int64()
		if n < -1 || accuracy != big.Exact {
			r.Fail(r.At("ulimits"), "Invalid limit", "The limit %s must be a whole number, or -1 for none.", name)
		}
		limits[name] = n
	}
	return limits
}

// deviceDirs returns the devices that a container may get beside GPUs: network cards, and drivers that copy between
// processes and devices. Others, such as disks or the machine's memory, would give away the machine.
func deviceDirs() []string {
	return []string{"/dev/infiniband", "/dev/gdrdrv", "/dev/knem", "/dev/xpmem"}
}

// devices reads paths of devices of the host.
func (r reader) devices() []string {
	list := r.Strs("devices")
	for i, name := range list {
		allowed := slices.ContainsFunc(deviceDirs(), func(dir string) bool {
			return name == dir || strings.HasPrefix(name, dir+"/")
		})
		if !allowed || path.Clean(name) != name {
			r.Fail(r.AtItem("devices", i), "Device is refused",
				"A container gets no device %q. It may get %s, or devices below. GPUs come with gpus { count = N }.",
				name, strings.Join(deviceDirs(), ", "))
		}
	}
	return list
}

// capabilities reads the capabilities of a container. With any of the allowed ones, a program stays in its container.
func (r reader) capabilities() []string {
	allowed := []string{"IPC_LOCK", "SYS_NICE", "SYS_PTRACE"}
	list := r.Strs("capabilities")
	for i, name := range list {
		if !slices.Contains(allowed, name) {
			r.Fail(r.AtItem("capabilities", i), "Capability is refused",
				"A container gets no capability %q, as most let a program out of its container.%s",
				name, diag.Choices(name, allowed))
		}
	}
	return list
}
