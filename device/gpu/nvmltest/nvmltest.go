// Package nvmltest builds a stand-in for NVIDIA's NVML on machines without a GPU. The library has NVML's binary
// interface, so that it is loaded like the real one, and plays a scenario from a text file (see testdata/nvml.c).
package nvmltest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

//go:embed testdata/nvml.c
var source []byte

// ErrNoCompiler is the error if the library cannot be built.
var ErrNoCompiler = errors.New("no C compiler (apt-get install gcc)")

// TwoH100 is a scenario with two devices, the second of which is hot and in use.
const TwoH100 = `system driver=550.54.15 cuda=12040
gpu uuid=GPU-a name=NVIDIA_H100_80GB_HBM3 mib=81559 used=4 pci=00000000:18:00.0 limit=700 temp=31 util=0 power=70 sm=345 max=1980 mem=2619 slow=0x0 ecc=0 brand=14
gpu uuid=GPU-b name=NVIDIA_H100_80GB_HBM3 mib=81559 used=61000 pci=00000000:2a:00.0 limit=500 temp=83 util=97 power=499 sm=1410 max=1980 mem=2619 slow=0x44 ecc=2 brand=14
nvlink from=GPU-a to=GPU-b n=4
path from=GPU-a to=GPU-b level=40
`

// World builds the library for a test and returns its path and a function that writes a scenario, for this process
// and its children. If the library cannot be built, the test is skipped.
func World(t testing.TB, old bool) (library string, play func(text string)) {
	t.Helper()
	library, err := Build(t.TempDir(), old)
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "scenario")
	t.Setenv("NVML_SCENARIO", file)
	return library, func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Build builds the library in a directory and returns its path. With old, it lacks the functions that drivers before
// 2020 lack. Processes that load it read their scenario from the file in NVML_SCENARIO.
func Build(dir string, old bool) (library string, err error) {
	compiled := compiledNew
	if old {
		compiled = compiledOld
	}
	text, err := compiled()
	if err != nil {
		return "", err
	}
	library = filepath.Join(dir, "libnvidia-ml.so.1")
	return library, os.WriteFile(library, text, 0o755)
}

// The libraries are compiled once for all tests of a package.
var (
	compiledNew = sync.OnceValues(func() ([]byte, error) { return compile() })
	compiledOld = sync.OnceValues(func() ([]byte, error) { return compile("-DOLD") })
)

func compile(flags ...string) ([]byte, error) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return nil, ErrNoCompiler
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return nil, fmt.Errorf("where NVML's header is: %w", err)
	}
	dir, err := os.MkdirTemp("", "nvmltest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	code, library := filepath.Join(dir, "nvml.c"), filepath.Join(dir, "nvml.so")
	if err := os.WriteFile(code, source, 0o644); err != nil {
		return nil, err
	}
	args := append(flags, "-shared", "-fPIC", "-O1", "-DNVML_NO_UNVERSIONED_FUNC_DEFS=1",
		"-I"+strings.TrimSpace(string(module))+"/pkg/nvml", "-o", library, code)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(library)
}

// Scenario returns a scenario with n idle devices of a model (with _ for spaces) with mib MiB each. Their UUIDs
// contain machine.
func Scenario(machine, model string, mib, n int) string {
	var text strings.Builder
	text.WriteString("system driver=550.54.15 cuda=12040\n")
	for i := range n {
		fmt.Fprintf(&text, "gpu uuid=GPU-%s-%d name=%s mib=%d pci=00000000:%02d:00.0 temp=31 util=0\n",
			machine, i, model, mib, i)
	}
	return text.String()
}
