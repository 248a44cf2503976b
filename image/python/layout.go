// Package python finds the Python packages of an image, and maps files of wheels to paths in the image.
package python

import (
	"path"
	"strings"

	"github.com/benchgraph/benchgraph/wheel"
)

// Layout holds the directories of an image's packages.
type Layout struct {
	Purelib, Platlib, Scripts, Data string // absolute; empty: unknown
	Pip                             bool
}

// Find asks the Python for which pip would install. Without a Python it looks in the usual directories. The last line
// that it prints for a name counts.
const Find = `
for d in /usr/lib/python3*/site-packages /usr/lib/python3/dist-packages /opt/conda/lib/python3*/site-packages /usr/local/lib/python3*/site-packages /usr/local/lib/python3*/dist-packages; do
	if [ -d "$d" ]; then echo "purelib=$d"; echo "platlib=$d"; fi
done
if command -v python3 >/dev/null; then
	python3 -c '
import sysconfig
for name, value in sysconfig.get_paths().items(): print(name + "=" + value)'
	if python3 -m pip --version >/dev/null 2>&1; then echo pip=yes; fi
fi
`

// Parse parses the output of Find; ok is false without a directory of packages.
func Parse(text string) (found Layout, ok bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "purelib":
			found.Purelib = value
		case "platlib":
			found.Platlib = value
		case "scripts":
			found.Scripts = value
		case "data":
			found.Data = value
		case "pip":
			found.Pip = true
		}
	}
	return found, path.IsAbs(found.Purelib) && path.IsAbs(found.Platlib)
}

// Place returns the path in an image of a file of a wheel; "" if it is unknown, as for scripts, which installers
// rewrite.
func (l Layout) Place(w *wheel.Wheel, f wheel.File) string {
	lib := l.Platlib
	if w.Pure {
		lib = l.Purelib
	}
	dir := ""
	switch f.Scheme {
	case "lib":
		dir = lib
	case "purelib":
		dir = l.Purelib
	case "platlib":
		dir = l.Platlib
	case "data":
		dir = l.Data
	}
	if dir == "" {
		return ""
	}
	return path.Join(dir, f.Path)
}
