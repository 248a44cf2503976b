package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container/trial"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// MountsAt returns the mounts at some addresses, in that order.
func MountsAt(s *hclspec.Spec, addresses []hclspec.Address) []*hclspec.Mount {
	var all []*hclspec.Mount
	for _, a := range addresses {
		i := slices.IndexFunc(s.Mounts, func(m hclspec.Mount) bool { return m.Address == a })
		all = append(all, &s.Mounts[i])
	}
	return all
}

// describeMounts adds mounts to a key, by their declared identities.
func (p *Facts) describeMounts(d *cache.Description, addresses []hclspec.Address) {
	for _, m := range MountsAt(p.Spec, addresses) {
		d.Add("mount", m.Target, m.Identity, strconv.FormatBool(m.Writable))
	}
}

// MountSource returns the directory of a mount on this machine. In a copy of a project, a relative path begins at the
// original: mounts are too large to be copied.
func (p *Facts) MountSource(m *hclspec.Mount) string {
	if rest, ok := strings.CutPrefix(m.Source, "~"); ok {
		for _, v := range p.Environ {
			if home, ok := strings.CutPrefix(v, "HOME="); ok {
				return filepath.Join(home, filepath.FromSlash(rest))
			}
		}
	}
	if p.Home == "" || filepath.IsAbs(m.Source) {
		return filepath.Clean(p.Spec.Path(m.Source))
	}
	return filepath.Join(p.Home, filepath.FromSlash(m.Source))
}

// LacksMount returns why commands cannot have a mount on this machine; "" if they can. It checks only names and sizes.
func (p *Facts) LacksMount(ctx context.Context, m *hclspec.Mount, contained bool) string {
	if m.Out != nil {
		return fmt.Sprintf("needs %s, which is out: %s", m.Address, m.Out.Reason)
	}
	if m.Volume {
		if !contained {
			return fmt.Sprintf("needs %s, a volume, which only containers can have: run it in an image, or mount a "+
				"directory", m.Address)
		}
		return ""
	}
	source := p.MountSource(m)
	info, err := os.Stat(source)
	if err != nil || !info.IsDir() {
		return fmt.Sprintf("needs %s, and there is no directory %s: create it, or change its source (%s)", m.Address,
			source, place(m.Range))
	}
	for _, own := range []string{p.StateDir, p.StoreDir} {
		if own != "" && (reaches(source, own) || reaches(own, source)) {
			return fmt.Sprintf("needs %s, and %s holds, or is held by, the state of benchgraph in %s: mount another "+
				"directory (%s)", m.Address, source, own, place(m.Range))
		}
	}
	if why := trial.Unmountable(ctx, p.Engine, source, m.Target); contained && why != "" {
		return fmt.Sprintf("needs %s, and its source is %s. %s: rename it (%s)", m.Address, source, why, place(m.Range))
	}
	for _, f := range m.Digests {
		if info, err := os.Stat(filepath.Join(source, filepath.FromSlash(f.Path))); err != nil ||
			!info.Mode().IsRegular() {
			return fmt.Sprintf("needs %s, and %s has no file %s, whose digest is declared (%s)", m.Address, source,
				f.Path, place(m.Range))
		}
	}
	return ""
}

// reaches reports whether a path is a directory or below it, with links resolved.
func reaches(dir, path string) bool {
	real := func(name string) string {
		if resolved, err := filepath.EvalSymlinks(name); err == nil {
			return resolved
		}
		return filepath.Clean(name)
	}
	rel, err := filepath.Rel(real(dir), real(path))
	return err == nil && filepath.IsLocal(rel)
}

// needMounts makes a node wait for its mounts and for the check of their declared files.
func (b *builder) needMounts(n *engine.Node, addresses []hclspec.Address, image hclspec.Address) {
	for _, m := range MountsAt(b.Spec, addresses) {
		alsoLacks(n, func(ctx context.Context) string { return b.LacksMount(ctx, m, image != hclspec.Address{}) })
		name := m.Address.String()
		if len(m.Digests) > 0 && !slices.ContainsFunc(n.Checks, func(k engine.Check) bool { return k.Name == name }) {
			n.Checks = append(n.Checks, engine.Check{
				Name: name, Run: func(ctx context.Context) { _ = b.verifyMount(ctx, m) },
			})
		}
	}
}

// openMounts returns mounts for a shell. It first verifies their declared files; a file that has not changed since the
// last time is not read again.
func (p *Facts) openMounts(ctx context.Context, addresses []hclspec.Address, contained bool) ([]shell.Mount, error) {
	var all []shell.Mount
	for _, m := range MountsAt(p.Spec, addresses) {
		if why := p.LacksMount(ctx, m, contained); why != "" {
			return nil, mountFailure("mount_missing", why, "see benchgraph plan")
		}
		if err := p.verifyMount(ctx, m); err != nil {
			return nil, err
		}
		s := shell.Mount{Variable: m.Variable, Mount: executor.Mount{Inside: m.Target, Writable: m.Writable,
			Volume: m.Source}}
		if !m.Volume {
			s.Host, s.Volume = p.MountSource(m), ""
		}
		all = append(all, s)
	}
	return all, nil
}

// verifyMount compares the files of a mount with their declared digests.
func (p *Facts) verifyMount(ctx context.Context, m *hclspec.Mount) error {
	source := p.MountSource(m)
	paths := make([]string, len(m.Digests))
	for i, f := range m.Digests {
		paths[i] = filepath.Join(source, filepath.FromSlash(f.Path))
	}
	hashed, err := p.Stat.HashAll(ctx, paths)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, f := range m.Digests {
		switch {
		case hashed[i].SHA256 == "":
			return mountFailure("mount_missing", fmt.Sprintf("%s: %s cannot be read: %v", m.Address, paths[i], err),
				"bring the file back")
		case hashed[i].SHA256 != f.SHA256:
			return mountFailure("mount_differs", fmt.Sprintf("%s: %s has the SHA-256 %s, and %s is declared", m.Address,
				paths[i], hashed[i].SHA256, f.SHA256),
				"bring the declared file back, or declare this one: another identity is another result")
		}
	}
	return nil
}

// mountFailure returns a failure of this machine, which no retry can mend: somebody must change something first.
func mountFailure(rule, message, remedy string) error {
	return &engine.Failure{Err: errors.New(message), Retry: &engine.Retry{Attempts: 1}, Failure: failure.Failure{
		Class: failure.Infra, Rule: rule, Stage: "start", Message: message, Remedy: remedy,
	}}
}
