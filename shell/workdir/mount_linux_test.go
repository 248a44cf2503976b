package workdir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// A mount in $OUT, or on it, is no result. The test runs in a mount namespace of its own.
func TestMountsAreNoResult(t *testing.T) {
	dir := needtest.Apart(t)
	if dir == "" {
		return
	}
	for _, below := range []string{"", "/some dir"} {
		made, kept := filepath.Join(dir, "made"), filepath.Join(dir, "kept")
		for _, d := range []string{made + below, kept + below} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("none", d, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(d, "file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		env := &engine.Env{Out: kept, Log: io.Discard, Emit: func(engine.Event) {}}
		for _, patterns := range [][]string{nil, {"**"}} {
			err := Keep(t.Context(), env, made, patterns, nil)
			f, ok := errors.AsType[*engine.Failure](err)
			if !ok || f.Rule != "mount_point" || f.Class != failure.Invalid ||
				!strings.Contains(f.Message, "$OUT"+below+" is a mount point") {
				t.Errorf("%q, %v: %v", below, patterns, err)
			}
		}
		for _, d := range []string{made + below, kept + below} {
			if err := unix.Unmount(d, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}
