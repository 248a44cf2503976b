package workdir

import (
	"context"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// mostCached is the greatest size of a cache in bytes. The cache is copied for each start, while devices wait.
const mostCached = 32 << 30

// CopyCache is CopyTree with the times of files, which build tools compare.
func CopyCache(dst, src string) error {
	if err := fs.CopyTree(dst, src); err != nil {
		return err
	}
	return filepath.WalkDir(src, func(name string, d iofs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(src, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(filepath.Join(dst, rel), info.ModTime(), info.ModTime())
	})
}

// TakeCache moves the directory name below root, which commands may have filled, to the directory to in the result. The
// commands could write to root and below, so each part of the path is checked. It returns the size in bytes. A cache
// that cannot be kept is an *engine.Failure.
func TakeCache(
	ctx context.Context, env *engine.Env, to, root, name, title string, secrets Secrets,
) (bytes int64, err error) {
	dir := root
	for _, part := range strings.Split(name, "/") {
		dir = filepath.Join(dir, part)
		if _, err := os.Lstat(dir); os.IsNotExist(err) {
			return 0, os.Mkdir(to, 0o755)
		}
		if err := isDirectory(dir, title); err != nil {
			return 0, Unfit("not_a_directory", title+" is no directory any more",
				"let the program keep its cache in a directory, and not in one that a link leads to")
		}
	}
	if err := unmounted(dir, title); err != nil {
		return 0, err
	}
	if err := os.Rename(dir, to); err != nil {
		return 0, Unfit("unreadable", fmt.Sprintf("%s cannot be taken over: %v", title, err),
			"let the program leave a directory that can be moved")
	}
	// The size is checked before all files are searched for secrets, as far as they can be read.
	if bytes, _ := sizeOf(to); bytes > mostCached {
		size, most := units.BytesSize(float64(bytes)), units.BytesSize(mostCached)
		return 0, Unfit("too_large",
			fmt.Sprintf("%s holds %s, and a cache is copied for each start: %s at most", title, size, most),
			"name the directories that hold what is compiled, and bring weights by a mount")
	}
	if err := Admit(ctx, env, to, title, secrets, 1); err != nil {
		return 0, err
	}
	return sizeOf(to)
}

// sizeOf returns the size in bytes of the regular files below a directory.
func sizeOf(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d iofs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
