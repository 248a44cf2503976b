//go:build !linux

package fs

import "os"

func writeBack(*os.File, int64, int64) {}
