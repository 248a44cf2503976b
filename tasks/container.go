package tasks

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/docker"
)

// The directories that commands in containers know. They are the same on every machine, and those of inputs follow from
// the node's key, so that nothing of a host's layout gets into what commands make.
const (
	insideWork = "/benchgraph/work"
	insideOut  = "/benchgraph/out"
	insideHome = "/benchgraph/home"
	insideIn   = "/benchgraph/in" // an input is below its number among the node's inputs
)

// usualPath is where programs are looked for in an image that does not say.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// box is the kind of container that a shell's commands run in, each in one of its own.
type box struct {
	executor.Container // what all of them have in common
	image              *imageRecord
	home, out          string // directories of the host
	dir                string // in which commands run
	inputs             inputs
	keyed              bool // the limits are part of the node's key
}

// inside says in what the commands of a node run.
type inside struct {
	hclspec.Limits
	node    hclspec.Address
	image   hclspec.Address // zero: on the host
	network bool
	keyed   bool // the limits are part of the node's key
}

// enter lets the commands run in containers of an image. From now on, variables and references are paths in there.
func (s *shell) enter(r refs, in inside) error {
	if in.image == (hclspec.Address{}) {
		return nil
	}
	image, err := readImage(r.input(s.env, in.image).Entry)
	if err != nil {
		return fmt.Errorf("%s: %w", in.image, err)
	}
	home, err := os.MkdirTemp(s.env.Scratch, "home-")
	if err != nil {
		return err
	}
	s.box = &box{image: image, home: home, out: s.vars["OUT"], dir: insideWork, inputs: inputs{}, keyed: in.keyed, Container: executor.Container{
		Image: image.ID, Labels: map[string]string{docker.LabelNode: in.node.String()}, User: fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		Memory: in.Memory, Outward: in.network,
	}}
	if l := s.env.Lease; l != nil {
		s.box.CPUs = coreList(l.Cores)
		for _, d := range l.GPUs {
			s.box.GPUs = append(s.box.GPUs, d.UUID)
		}
	}
	s.path = s.box.inputs.paths(r, s.env)
	s.vars["OUT"], s.vars["SRC"], s.vars["SITE"] = insideOut, insideWork, insideWork
	if image.Site != "" {
		s.vars["SITE"] = image.Site
	}
	return nil
}

// coreList writes numbers as container engines read them.
func coreList(cores []int) string {
	text := make([]string, len(cores))
	for i, core := range cores {
		text[i] = strconv.Itoa(core)
	}
	return strings.Join(text, ",")
}

// inputs are directories of the host by their paths in containers: what commands were told of, and see read-only.
type inputs map[string]string

// paths gives references the paths of what they refer to, as refs.paths does on the host, and notes what was referred to.
func (i inputs) paths(r refs, env *engine.Env) func(hclspec.Address) string {
	return func(a hclspec.Address) string {
		in, to := r.input(env, a), r.inside(a)
		i[to] = in.Dir
		if a.Kind == "fetch" {
			if rel, err := filepath.Rel(in.Dir, onlyFile(in.Entry)); err == nil {
				return path.Join(to, filepath.ToSlash(rel))
			}
		}
		return to
	}
}

// inside is where a container has the result behind a reference.
func (r refs) inside(a hclspec.Address) string {
	return path.Join(insideIn, strconv.Itoa(slices.Index(r, a)))
}

func (i inputs) mounts() []executor.Mount {
	var mounts []executor.Mount
	for _, to := range slices.Sorted(maps.Keys(i)) {
		mounts = append(mounts, executor.Mount{Host: i[to], Inside: to})
	}
	return mounts
}

// mounts are what a command sees of the host: its directories, and what it was told of.
func (b *box) mounts(work string) []executor.Mount {
	return append([]executor.Mount{
		{Host: work, Inside: insideWork, Writable: true}, {Host: b.out, Inside: insideOut, Writable: true}, {Host: b.home, Inside: insideHome, Writable: true},
	}, b.inputs.mounts()...)
}

// onHost is where something lies on the host that commands know by this path. What lies in the image keeps its path.
func (s *shell) onHost(name string) string {
	if s.box == nil {
		return name
	}
	for _, m := range s.box.mounts(s.dir) {
		if rel, ok := strings.CutPrefix(path.Clean(name), m.Inside); ok && (rel == "" || rel[0] == '/') {
			return filepath.Join(m.Host, filepath.FromSlash(rel))
		}
	}
	return name
}

// environ is the environment of commands, before what the node declares: that of the image, and a home that they may
// write to. There may be no user of their number in the image, so that they are told a name.
func (b *box) environ() []string {
	all := map[string]string{"PATH": usualPath, "LANG": "C.UTF-8", "USER": "benchgraph"}
	for _, v := range b.image.Env {
		if name, value, ok := strings.Cut(v, "="); ok {
			all[name] = value
		}
	}
	all["HOME"] = insideHome
	var environ []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		environ = append(environ, name+"="+all[name])
	}
	return environ
}

// runner is what runs the shell's commands.
func (s *shell) runner() executor.Executor {
	if s.box != nil {
		return s.p.Containers
	}
	return s.p.Host
}

// outOfMemory is the failure of a command that was killed because it used too much memory.
func (s *shell) outOfMemory(stage string, c *captured) error {
	f := &engine.Failure{Failure: cache.Failure{Class: cache.Permanent, Rule: "oom_killed", Stage: stage, Evidence: lastLine(c)}}
	switch {
	case s.box.Memory == 0:
		f.Class = cache.Infra
		f.Message, f.Remedy = stage+": killed, because this machine ran out of memory", "declare memory, so that no more is run at a time than fits"
	default:
		f.Message = fmt.Sprintf("%s: killed, because it used more than its %s of memory", stage, units.BytesSize(float64(s.box.Memory)))
		f.Remedy = "raise memory in the block"
		if !s.box.keyed {
			f.Remedy += ", and apply with -retry-failed"
		}
	}
	return f
}

// inImage lets a node run in an image, which is among what it needs: it also waits for an engine.
func (b *builder) inImage(n *engine.Node, image hclspec.Address) {
	if image != (hclspec.Address{}) {
		n.Lacks = b.lacks
		n.Resources.Cores = n.Resources.Cores || n.Resources.CPUs > 0
	}
}

// askEngine says why there is no container engine; empty: there is one.
func (p *Project) askEngine() string {
	if p.Engine == nil {
		return "needs a container engine, and none was looked for"
	}
	ctx, cancel := context.WithTimeout(context.Background(), enginePatience)
	defer cancel()
	if _, err := p.Engine.Info(ctx); err != nil {
		return "needs a container engine: " + err.Error()
	}
	return ""
}

// enginePatience bounds the wait for an engine that is there and does not answer.
const enginePatience = 10 * time.Second

// withImage adds to the fixes that a node may learn those of its image, and returns which of them that is made with.
func (b *builder) withImage(allowed []hclspec.Address, image hclspec.Address) (all []hclspec.Address, built []appliedFix) {
	if image == (hclspec.Address{}) {
		return allowed, nil
	}
	own, built := b.imageFixes(image)
	return slices.Concat(allowed, own), built
}

// imageFixes are the fixes that an image, or one that it begins with, may get, and those that they are made with.
func (b *builder) imageFixes(image hclspec.Address) (allowed []hclspec.Address, built []appliedFix) {
	for s := b.images[image]; s != nil; s = b.images[s.Base] {
		own := b.eligible(s.Fixes)
		allowed, built = slices.Concat(allowed, own), addFixes(built, b.dueIn(s))
	}
	return allowed, built
}
