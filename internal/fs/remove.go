package fs

import (
	"errors"
	"fmt"
)

// RemoveTree removes dir with its content, including read-only directories such as those of an entry or of Go's
// module cache. It follows no links and enters no mounts: a mount point stays, with its parent directories, and the
// error names it. A missing dir is no error.
func RemoveTree(dir string) error {
	if dir == "" { // filepath.Clean would turn it into the working directory
		return errors.New("remove a directory without a name")
	}
	if err := removeTree(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}
