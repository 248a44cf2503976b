//go:build !linux

package fs

import (
	"errors"
	"os"
)

func writeBack(*os.File, int64, int64) {}

// SyncAll is not supported: sync(2) does not wait for the disk on this system.
func SyncAll(*os.File) error { return errors.ErrUnsupported }
