package main

import (
	"io"
	"path/filepath"
	"testing"
)

// The limit of the engine's disk in the environment reaches the makers of images.
func TestImageDisk(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "60GiB": 60 << 30, "1500m": 1500 << 20} {
		dir := t.TempDir()
		lock := filepath.Join(dir, "lock")
		s := &session{
			app: &app{env: map[string]string{"BENCHGRAPH_IMAGE_DISK": text, "BENCHGRAPH_HOST_LOCK": lock},
				stderr: io.Discard},
			place: place{dir: dir, state: filepath.Join(dir, "state"), store: filepath.Join(dir, "state", "store")},
		}
		if err := s.openState(t.Context(), access{}); err != nil {
			t.Fatal(err)
		}
		defer s.close()
		if c := s.config(t.Context(), access{}, nil); c.ImageDisk != want || c.ImageLocks != lock+".images" {
			t.Errorf("%q: %d bytes, locks in %s", text, c.ImageDisk, c.ImageLocks)
		}
	}
}
