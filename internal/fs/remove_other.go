//go:build !linux

package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// removeTree is RemoveTree for systems without bind mounts, where each mount is another device.
func removeTree(dir string) error {
	mounts, err := MountsBelow(dir)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s: it is a mount point: unmount it first", mounts[0])
	}
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil // RemoveAll reports directories whose mode cannot be changed
	})
	return os.RemoveAll(dir)
}

// MountsBelow returns the mount points at or below a directory.
func MountsBelow(dir string) ([]string, error) {
	device := func(path string) (int64, bool) {
		info, err := os.Lstat(path)
		if err != nil {
			return 0, false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0, false
		}
		return int64(st.Dev), true
	}
	own, ok := device(filepath.Dir(dir))
	if !ok {
		return nil, nil
	}
	var found []string
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // readers of the directory report the error
		}
		if d, ok := device(path); ok && d != own {
			found = append(found, path)
			return filepath.SkipDir
		}
		return nil
	})
	return found, nil
}
