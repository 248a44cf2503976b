//go:build !linux

package rounds

import "os"

// syncsWhole returns false: sync(2) does not wait for the disk on this system, so files must be synced one by one.
func syncsWhole(*os.File) bool { return false }
