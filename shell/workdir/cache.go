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

// mostCached bounds the bytes of a cache. It is copied for each start, while devices wait.
const mostCached = 32 << 30

// CopyCache is CopyTree that keeps the times of files: build tools that fill caches compare them.
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

// TakeCache moves into the result, as the directory to, what commands left in the directory called name below root.
// Both were theirs, so that each part of the name may be something else by now. It reports how many bytes there are.
// What cannot be kept is a *engine.Failure.
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
	// Before all of it is searched for secrets, as far as it can be read.
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

// sizeOf are the bytes of the regular files below a directory.
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
