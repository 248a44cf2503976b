package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// LayCache gives later commands a private copy of the directory from. path is absolute in their container, or below
// their home if it begins with ~/. If from is empty or does not exist, the directory is empty. The copy is in root, a
// directory of the host, under name. On the host without a sandbox, the commands get a new home for that.
func (s *Shell) LayCache(path, from string) (root, name string, err error) {
	name, home := strings.CutPrefix(path, "~/")
	switch {
	case home:
		root, err = s.ownHome()
	case s.box == nil:
		err = fmt.Errorf("%s is a directory of this machine, where a start cannot have a copy of its own", path)
	default:
		name = "cache"
		if root, err = os.MkdirTemp(s.env.Scratch, "cache-"); err == nil {
			m := executor.Mount{Host: filepath.Join(root, name), Inside: path, Writable: true}
			s.box.extra = append(s.box.extra, m)
		}
	}
	if err != nil {
		return "", "", err
	}
	dir := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	if transcript.Of(s.env).Did("cache", from, dir); from == "" {
		return root, name, nil
	}
	if err := workdir.CopyCache(dir, from); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	return root, name, nil
}

// ownHome returns the directory of the host that is the home of these commands alone.
func (s *Shell) ownHome() (string, error) {
	switch {
	case s.box != nil:
		return s.box.home, nil
	case s.cell != nil:
		// A sandbox puts its home in the place of the user's, if that exists.
		if info, err := os.Stat(s.variables("$HOME")); err != nil || !info.IsDir() {
			s.vars["HOME"] = s.cell.Home
		}
		return s.cell.Home, nil
	case s.home == "":
		home, err := os.MkdirTemp(s.env.Scratch, "home-")
		if err != nil {
			return "", err
		}
		s.home, s.vars["HOME"] = home, home
	}
	return s.home, nil
}
