package containertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// pythonPackages are the packages of the Python image in addition to Debian's minimal base.
const pythonPackages = "python3-minimal,python3-pip"

// pythonMu is held while the image is made, so that parallel tests make only one.
var pythonMu sync.Mutex

// Python returns the ID of an image of Debian with python3 and pip. Unless the engine has the image, debootstrap
// makes it in about a minute; the image stays.
func Python(t testing.TB, e *container.Engine) string {
	t.Helper()
	pythonMu.Lock()
	defer pythonMu.Unlock()
	label := imageLabel + "=python-" + strings.ReplaceAll(pythonPackages, ",", "-")
	if id := labelled(t, e, label); id != "" {
		return id
	}
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		needtest.Missing(t, "no debootstrap, or not root (Debian: debootstrap)")
	}
	root := filepath.Join(t.TempDir(), "root")
	debootstrap := exec.Command("debootstrap", "--variant=minbase", "--include="+pythonPackages, "bookworm", root)
	debootstrap.Env = append(os.Environ(), "http_proxy="+aptProxy())
	if out, err := debootstrap.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		needtest.Missing(t, "debootstrap: %v: %s", err, text[max(0, len(text)-500):])
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	tar := exec.Command("tar", "-C", root, "--exclude=./var/cache/apt/archives/*.deb",
		"--exclude=./var/lib/apt/lists/*", "-c", ".")
	text, err := tar.StdoutPipe()
	if err == nil {
		err = tar.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	id := Load(t, e, text, "LABEL "+label)
	if err := tar.Wait(); err != nil {
		t.Fatal(fmt.Errorf("tar: %w", err))
	}
	return id
}

// aptProxy returns the proxy of apt, or else the environment's; empty: none.
func aptProxy() string {
	out, _ := exec.Command("apt-config", "shell", "p", "Acquire::http::Proxy").Output()
	proxy := strings.Trim(strings.TrimPrefix(strings.TrimSpace(string(out)), "p="), "'")
	if proxy == "" {
		return os.Getenv("http_proxy")
	}
	return proxy
}
