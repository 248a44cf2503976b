package executor_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// inMachine is set in the machine of TestInAMachineWithControlGroups.
const inMachine = "BENCHGRAPH_TEST_MACHINE"

// boot is the first program of that machine.
const boot = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root ` + inMachine + `=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /tmp
ip link set lo up
cd /tmp
/tests -test.v -test.run '^TestLimit|^TestASandbox' 2>&1
echo "tests ended: $?"
poweroff -f
`

// TestInAMachineWithControlGroups boots a kernel whose control groups are of version 2, in an emulator, and runs the
// tests of limits there: on the machine itself the controllers may be those of version 1, or somebody else's.
func TestInAMachineWithControlGroups(t *testing.T) {
	if os.Getenv(inMachine) != "" {
		return
	}
	t.Parallel()
	emulator, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		needtest.Missing(t, "no emulator (apt-get install qemu-system-x86)")
	}
	kernels, _ := filepath.Glob("/boot/vmlinuz-*-cloud-amd64")
	if len(kernels) == 0 {
		needtest.Missing(t, "no kernel to boot (apt-get install linux-image-cloud-amd64)")
	}
	slices.Sort(kernels)
	dir := t.TempDir()
	pack(t, dir)
	const patience = 5 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, emulator,
		"-nodefaults", "-no-reboot", "-nographic", "-serial", "stdio", "-m", "1024", "-smp", "2",
		"-accel", "tcg,thread=multi", "-cpu", "max",
		"-kernel", kernels[len(kernels)-1], "-initrd", filepath.Join(dir, "initrd"),
		"-append", "console=ttyS0 quiet panic=-1 rdinit=/init")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "tests ended: 0") {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range []string{"TestLimitOfMemory", "TestLimitOfCores", "TestLimitsEndWhatIsLeft"} {
		for _, how := range []string{"on_the_host", "in_a_sandbox"} {
			if !strings.Contains(text, "--- PASS: "+name+"/"+how) {
				t.Errorf("%s %s did not pass:\n%s", name, how, text)
			}
		}
	}
}

// libraries are the paths in what ldd says of a program.
var libraries = regexp.MustCompile(`(/\S+) \(0x`)

// pack makes the first file system of the machine: busybox, and these tests with the libraries that they need.
func pack(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"/bin/busybox": "/bin/busybox", "/tests": self}
	linked, _ := exec.Command("ldd", self).CombinedOutput() // it fails for a static program, which needs no library
	for _, m := range libraries.FindAllStringSubmatch(string(linked), -1) {
		files[m[1]] = m[1]
	}
	root := filepath.Join(dir, "root")
	for _, d := range []string{"proc", "sys", "dev", "tmp", "etc", "run", "root", "home", "var/tmp", "usr"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for to, from := range files {
		err := copyTo(filepath.Join(root, to), from)
		if errors.Is(err, fs.ErrNotExist) && from == "/bin/busybox" {
			needtest.Missing(t, "no busybox (apt-get install busybox-static)")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "init"), []byte(boot), 0o755); err != nil {
		t.Fatal(err)
	}
	archive := exec.Command("sh", "-c", "find . | busybox cpio -o -H newc | gzip -1")
	archive.Dir = root
	var said bytes.Buffer
	archive.Stderr = &said
	packed, err := archive.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if err := os.WriteFile(filepath.Join(dir, "initrd"), packed, 0o644); err != nil {
		t.Fatal(err)
	}
}

func copyTo(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o755))
}
