package fs

import "path/filepath"

// Below reports whether a path is a directory or lies in it, by their names: links are not followed.
func Below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
