package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/internal/fs"
)

func (m *making) changed(ctx context.Context, box string, changes []api.FilesystemChange) (bool, error) {
	var edited []string
	for _, c := range changes {
		switch {
		case ofContainer(c.Path), m.inVolume(c.Path) != nil: // mount points of volumes are made for the container
		case c.Kind != api.ChangeModify:
			return true, nil
		default:
			edited = append(edited, c.Path)
		}
	}
	if len(edited) > mostCompared {
		return true, nil
	}
	return m.differ(ctx, box, edited)
}

// notePatched notes the changed files outside of installed packages. Later checks compare the packages with their
// RECORDs.
func (m *making) notePatched(changes []api.FilesystemChange, labels map[string]string) error {
	packages, err := m.packages(m.at.Labels)
	if err != nil || len(packages) == 0 {
		return err
	}
	for i := range packages {
		p := &packages[i]
		for _, c := range changes {
			if strings.HasPrefix(c.Path, path.Dir(p.Info)+"/") && !ofContainer(c.Path) &&
				!slices.Contains(p.Patched, c.Path) {
				p.Patched = append(p.Patched, c.Path)
			}
		}
		slices.Sort(p.Patched)
	}
	text, err := json.Marshal(packages)
	labels[labelPackages] = string(text)
	return err
}

// ofContainer reports whether a path may change in any container, whatever the command.
func ofContainer(name string) bool {
	switch name {
	case "/sbin", "/sbin/docker-init", "/.dockerenv", "/etc", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf",
		"/etc/mtab", "/dev", "/proc", "/sys", "/run", "/run/.containerenv", "/tmp":
		return true
	}
	return strings.HasPrefix(name, "/benchgraph") || strings.HasPrefix(name, "/tmp/") ||
		strings.HasPrefix(name, "/dev/") || strings.Contains(name, "/__pycache__")
}

// mostCompared is the greatest number of modified files that are compared: of more files, one certainly differs.
const mostCompared = 200

// differ reports whether any of the files has other content than in the image.
func (m *making) differ(ctx context.Context, box string, names []string) (bool, error) {
	now := map[string]string{}
	for _, name := range names {
		err := m.engine.CopyFrom(ctx, box, name, func(r io.Reader) error {
			in, sum := tar.NewReader(r), sha256.New()
			h, err := in.Next()
			if err != nil || h.Typeflag != tar.TypeReg {
				return err // a directory counts as modified when a file in it is
			}
			_, err = io.Copy(sum, in)
			now[name] = hex.EncodeToString(sum.Sum(nil))
			return err
		})
		if err != nil && !container.IsNotFound(err) {
			return false, err
		}
	}
	if len(now) == 0 {
		return false, nil
	}
	files := slices.Sorted(maps.Keys(now))
	text, err := m.inspect(ctx, "build", append([]string{"sha256sum", "--"}, files...), nil)
	if err != nil {
		return true, nil // no answer, for instance without sha256sum, counts as a change
	}
	before := strings.Fields(text)
	for _, name := range files {
		if !slices.Contains(before, now[name]) {
			return true, nil
		}
	}
	return false, nil
}

// inVolume returns the failure of a step that writes below a volume of the image: an image does not keep such files.
func (m *making) inVolume(at string) error {
	for _, volume := range m.at.Volumes {
		if fs.Below(at, path.Clean(volume)) {
			return buildFailure("in_volume", fmt.Sprintf("%s is below %s, a VOLUME of the image: what is put there "+
				"does not become part of it", at, volume),
				"begin with an image without that VOLUME, or put it elsewhere")
		}
	}
	return nil
}
