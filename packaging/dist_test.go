//go:build linux

// Package packaging tests what packaging/dist makes: it installs it where nothing else is.
package packaging

import (
	"debug/elf"
	"debug/macho"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

const project = `
task "words" { command = "echo a b c | wc -w >$OUT/words" }
task "count" {
  data    = { "words" = task.words }
  command = "test $(cat words) -eq 3"
}
`

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// lacks says what this machine lacks for a container image.
func lacks() string {
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		return "root and debootstrap"
	}
	if exec.Command("docker", "version").Run() != nil {
		return "a Docker engine"
	}
	return ""
}

// one is the file that a pattern stands for.
func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[0]
}

func TestDist(t *testing.T) {
	if exec.Command("sh", "-c",
		"(python3 -c 'import wheel' || /usr/bin/python3 -c 'import wheel') && command -v jq").Run() != nil {
		needtest.Missing(t, "this needs jq and Python's wheel")
	}
	dist := t.TempDir()
	image := "benchgraph-dist-test"
	if lacks() != "" {
		image = ""
	}
	t.Setenv("PLATFORMS", "linux/amd64 darwin/arm64")
	t.Setenv("IMAGE", image)
	run(t, ".", "./dist", dist)
	run(t, dist, "sha256sum", "--check", "--quiet", "SHA256SUMS")

	t.Run("archive in an empty root", func(t *testing.T) {
		if os.Getuid() != 0 {
			needtest.Missing(t, "this needs root")
		}
		busybox, err := exec.LookPath("busybox")
		if err != nil {
			needtest.Missing(t, "this needs busybox-static")
		}
		root := t.TempDir()
		run(t, root, "sh", "-euc", `mkdir -p bin tmp proc dev work
cp "$0" bin/busybox
mknod dev/null c 1 3
for name in sh wc cat test; do ln -s busybox bin/$name; done
printf '%s' "$1" >work/benchmarks.hcl
tar -xzf "$2" --strip-components=1 -C bin`, busybox, project, one(t, filepath.Join(dist, "*_linux_amd64.tar.gz")))
		for _, file := range []string{"benchgraph.1", "LICENSE", "README.md", "completions/benchgraph.bash",
			"benchgraph-kubernetes", "benchgraph-modal"} {
			if _, err := os.Stat(filepath.Join(root, "bin", file)); err != nil {
				t.Error(err)
			}
		}
		program, err := elf.Open(filepath.Join(root, "bin/benchgraph"))
		if err != nil {
			t.Fatal(err)
		}
		if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 {
			t.Errorf("it needs %q, %v", libraries, err)
		}
		// In a mount namespace of its own: the program may want /proc.
		said := run(t, root, "unshare", "--mount", "sh", "-euc",
			`mount -t proc proc proc; exec chroot . /bin/busybox env PATH=/bin benchgraph -chdir=/work apply`)
		if !strings.Contains(said, "Apply: 2 done") {
			t.Error(said)
		}
	})
	t.Run("wheel", func(t *testing.T) {
		if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
			needtest.Missing(t, "this needs pip")
		}
		dir := t.TempDir()
		run(t, dir, "python3", "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check",
			"--target=.", one(t, filepath.Join(dist, "*manylinux*x86_64.whl")))
		for _, name := range []string{"benchgraph-kubernetes", "benchgraph-modal"} {
			run(t, dir, "sh", "-c", "bin/"+name+" </dev/null") // nobody calls it
		}
		if said := run(t, dir, "bin/benchgraph", "version"); !strings.HasPrefix(said, "benchgraph ") ||
			strings.Contains(said, "unknown") {
			t.Error(said)
		}
	})
	t.Run("macOS", func(t *testing.T) {
		dir := t.TempDir()
		run(t, dir, "tar", "-xzf", one(t, filepath.Join(dist, "*_darwin_arm64.tar.gz")), "--strip-components=1")
		program, err := macho.Open(filepath.Join(dir, "benchgraph"))
		if err != nil || program.Cpu != macho.CpuArm64 {
			t.Fatal(program, err)
		}
	})
	t.Run("modules", func(t *testing.T) {
		text, err := os.ReadFile(one(t, filepath.Join(dist, "benchgraph_*_linux_amd64.cdx.json")))
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			Format     string `json:"bomFormat"`
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(text, &bom); err != nil || bom.Format != "CycloneDX" {
			t.Fatalf("%q: %v", bom.Format, err)
		}
		for _, c := range bom.Components {
			if c.Name == "github.com/hashicorp/hcl/v2" && c.Version != "" {
				return
			}
		}
		t.Errorf("%d modules, and HCL is none of them", len(bom.Components))
	})
	t.Run("image", func(t *testing.T) {
		if what := lacks(); what != "" {
			needtest.Missing(t, "this needs %s", what)
		}
		version := strings.Fields(run(t, ".", "docker", "images", "--format", "{{.Tag}}", image))[0]
		defer run(t, ".", "docker", "rmi", image+":"+version)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(project), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := run(t, dir, "docker", "run", "--rm", "--network=none", "-v", dir+":/work", image+":"+version,
			"apply"); !strings.Contains(said, "Apply: 2 done") {
			t.Error(said)
		}
	})
}
