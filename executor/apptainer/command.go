//go:build linux

package apptainer

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/mount"
	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/apptainer/images"
)

// filter is the seccomp filter in Apptainer's format. It denies system calls that reach parts of the kernel which
// containers do not need. clone3 stays allowed: Apptainer cannot deny it with ENOSYS, and after any other error the C
// library makes no threads.
const filter = `{"defaultAction": "SCMP_ACT_ALLOW",
"archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
 {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}],
"syscalls": [{"action": "SCMP_ACT_ERRNO", "names": ["_sysctl", "acct", "add_key", "bpf", "clock_adjtime",
  "clock_settime", "create_module", "delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen",
  "fspick", "get_kernel_syms", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl",
  "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr", "move_mount",
  "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root", "query_module", "quotactl", "reboot",
  "request_key", "setns", "settimeofday", "stime", "swapoff", "swapon", "sysfs", "syslog", "umount", "umount2",
  "unshare", "uselib", "userfaultfd", "ustat", "vhangup", "vm86", "vm86old"]},
 {"action": "SCMP_ACT_ERRNO", "names": ["clone"],
  "args": [{"index": 0, "value": 268435456, "valueTwo": 268435456, "op": "SCMP_CMP_MASKED_EQ"}]}]}
`

// always holds the options of each container: namespaces of its own for users, processes, mounts and IPC, no
// privileges, a read-only root, and none of the mounts that Apptainer or its configuration would add.
var always = []string{"--userns", "--containall", "--cleanenv", "--no-privs", "--no-eval", "--no-umask", "--no-mount",
	"bind-paths,hostfs,cwd,tmp", "--hostname", "benchgraph"}

// command returns the command that runs the container's program on this machine.
func (b *box) command() (executor.Command, error) {
	c := executor.Command{Dir: "/", Env: b.engine.environ(), Grace: time.Millisecond,
		Argv: b.numbered()}
	if b.host.CpusetCpus != "" {
		c.Argv = append(c.Argv, "taskset", "-c", b.host.CpusetCpus)
	}
	network, err := b.network()
	if err != nil {
		return c, err
	}
	if network.beside != 0 {
		c.Argv = append(c.Argv, nsenter(network.beside, "--net")...)
	}
	c.Argv = append(append(c.Argv, inPIDNamespace...), b.engine.program, "-s", "exec")
	c.Argv = append(c.Argv, always...)
	if network.none {
		c.Argv = append(c.Argv, "--net", "--network", "none")
	}
	c.Argv = append(c.Argv, "--security", "seccomp:"+filepath.Join(b.engine.scratch, "seccomp.json"))
	env, home := b.environ()
	c.Env = append(c.Env, env...)
	mounts, err := b.mounts(home)
	if err != nil {
		return c, err
	}
	c.Argv = append(c.Argv, mounts...)
	if len(b.host.DeviceRequests) > 0 {
		c.Argv = append(c.Argv, "--nv")
	}
	c.Argv = append(c.Argv, "--pwd", orRoot(b.config.WorkingDir), b.root)
	c.Argv = append(append(c.Argv, b.config.Entrypoint...), b.config.Cmd...)
	if b.host.Memory > 0 {
		c.Limits = &executor.Limits{Memory: b.host.Memory, Cores: b.host.CpusetCpus}
	}
	return c, nil
}

// inPIDNamespace runs a command in a PID namespace. The kernel ends all processes of the namespace with its first
// process, so the container ends also when this process or benchgraph is killed with SIGKILL. Apptainer alone would
// leave the container running.
var inPIDNamespace = []string{"unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child",
	"--mount-proc", "sh", "-c", `"$@"; exit $?`, "sh"} // Apptainer itself would outlive its parent

// nsenter runs a command in namespaces of a container, as this user and without new privileges.
func nsenter(pid int, namespaces ...string) []string {
	return slices.Concat([]string{"setpriv", "--no-new-privs", "nsenter", "--target", strconv.Itoa(pid), "--user",
		"--preserve-credentials"}, namespaces, []string{"--"})
}

func orRoot(dir string) string {
	if dir == "" {
		return "/"
	}
	return dir
}

// environ returns variables for Apptainer that set the container's environment, and the container's home directory.
func (b *box) environ() (env []string, home string) {
	home = "/root"
	seen := map[string]bool{}
	for _, v := range slices.Backward(slices.Concat([]string{"PATH=" + usualPath}, b.image.Env, b.config.Env)) {
		name, value, ok := strings.Cut(v, "=")
		switch {
		case !ok || seen[name]:
		case name == "HOME":
			home = value // Apptainer sets HOME when it mounts the home directory
		default:
			env = append(env, "APPTAINERENV_"+v)
		}
		seen[name] = true
	}
	return env, home
}

// usualPath is the PATH of images that set none.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// mounts returns the options that mount files of this machine in the container.
func (b *box) mounts(home string) (options []string, err error) {
	homed := false
	bind := func(from, to string, writable bool) {
		if filepath.Clean(to) == filepath.Clean(home) && writable && !strings.ContainsAny(from+to, ":,") {
			options, homed = append(options, "--home", from+":"+to), true
			return
		}
		access := ",ro"
		if writable {
			access = ""
		}
		options = append(options, "--mount", "type=bind,"+quoted("source="+from)+","+quoted("destination="+to)+access)
	}
	bind(filepath.Join(b.engine.scratch, "hosts"), "/etc/hosts", false)
	if _, err := os.Stat("/sys/fs/cgroup"); err == nil { // hide the user's control groups: a program could move to one
		bind(filepath.Join(b.engine.scratch, "empty"), "/sys/fs/cgroup", false)
	}
	for _, dir := range b.temporary() {
		bind(filepath.Join(b.dir, filepath.Base(dir)+"-"), dir, true)
	}
	for _, m := range b.host.Mounts {
		if m.Type != mount.TypeBind {
			return nil, images.Cannot("it has no volumes, such as %s. Mount a directory", m.Source)
		}
		bind(m.Source, m.Target, !m.ReadOnly)
	}
	for _, m := range b.host.Binds { // paths with commas, but no colons
		if part := strings.Split(m, ":"); len(part) == 3 {
			bind(part[0], part[1], strings.HasPrefix(part[2], "rw"))
		}
	}
	masked, err := b.masked()
	if err != nil {
		return nil, err
	}
	for _, node := range masked {
		bind("/dev/null", node, false)
	}
	if !homed {
		options = append(options, "--home", filepath.Join(b.dir, "home")+":"+home)
	}
	return options, nil
}

// quoted returns a field of comma-separated values in quotes.
func quoted(field string) string { return `"` + strings.ReplaceAll(field, `"`, `""`) + `"` }

// temporary returns the temporary directories that the container has for itself.
func (b *box) temporary() []string { return slices.Sorted(maps.Keys(b.host.Tmpfs)) }

// masked returns the nodes of NVIDIA's devices to hide from the container: Apptainer shows all of them or none.
func (b *box) masked() (nodes []string, err error) {
	var uuids []string
	for _, r := range b.host.DeviceRequests {
		uuids = append(uuids, r.DeviceIDs...)
	}
	if len(uuids) == 0 || slices.Contains(uuids, "all") {
		return nil, nil
	}
	given, err := executor.DeviceNodes(uuids)
	if err != nil {
		return nil, err
	}
	for _, pattern := range []string{"/dev/nvidia[0-9]*", "/dev/nvidia-caps/nvidia-cap[0-9]*"} {
		all, _ := filepath.Glob(pattern)
		for _, node := range all {
			if !slices.Contains(given, node) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes, nil
}

// unsupported returns an error that names a requested property of the container which Apptainer does not have.
func (b *box) unsupported() error {
	h := &b.host
	me := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	enforced, _ := executor.Enforced()
	switch {
	case !h.ReadonlyRootfs:
		return images.Cannot(unmade)
	case len(h.Ulimits) > 0:
		return images.Cannot("it raises no limits (ulimits)")
	case len(h.Devices) > 0:
		return images.Cannot("it gives no devices but GPUs (devices)")
	case len(h.CapAdd) > 0:
		return images.Cannot("it gives no capabilities (%s)", strings.Join(h.CapAdd, ", "))
	case b.config.User != "" && b.config.User != me:
		return images.Cannot("a program runs as the user who starts it (%s), not as %s", me, b.config.User)
	case h.Memory > 0 && !enforced.Memory:
		return images.Cannot("this machine lets no user limit memory. Leave memory out of the block, and bound the " +
			"job (memory of the executor block); or give jobs control groups of their own (Delegate=yes)")
	case len(h.DeviceRequests) > 0 && !exists(nvidia):
		return images.Cannot("no CDI devices nvidia.com/gpu: there is no " + nvidia) // words of package container
	}
	if why := b.unavailable(); why != "" {
		return images.Refused(http.StatusBadRequest, why)
	}
	return nil
}

// unavailable returns an error message if this machine lacks a core or a directory that the container asks for.
func (b *box) unavailable() string {
	var mine unix.CPUSet
	_ = unix.SchedGetaffinity(0, &mine) // cannot fail for this process; a failure would leave no core
	for core := range strings.SplitSeq(b.host.CpusetCpus, ",") {
		if n, err := strconv.Atoi(core); err == nil && !mine.IsSet(n) {
			return "Requested CPUs are not available: " + b.host.CpusetCpus // words of package container
		}
	}
	for _, m := range b.host.Mounts {
		if m.Type == mount.TypeBind && !exists(m.Source) {
			return "bind source path does not exist: " + m.Source
		}
	}
	return ""
}

// nvidia exists if the machine has NVIDIA's driver.
const nvidia = "/dev/nvidiactl"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
