package fs

import "path/filepath"

// Below reports whether path is dir or inside it. It compares names and does not follow links.
func Below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
