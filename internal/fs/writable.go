package fs

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Nearest returns a path, or the nearest directory above it that exists.
func Nearest(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// Writable returns why nothing can be made in a directory, or in the nearest one above it that exists; nil if it can.
func Writable(dir string) error {
	dir = Nearest(dir)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
