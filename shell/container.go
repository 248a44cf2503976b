package shell

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// The directories that commands in containers know. They are the same on every machine, and those of inputs follow from
// the node's key, so that nothing of a host's layout gets into what commands make.
const (
	InsideWork = "/benchgraph/work" // the working directory
	insideOut  = "/benchgraph/out"
	insideHome = "/benchgraph/home"
)

// usualPath is where programs are looked for in an image that does not say.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// box is the kind of container that a shell's commands run in, each in one of its own.
type box struct {
	executor.Container // what all of them have in common
	image              *Image
	home, tmp, out     string // directories of the host
	dir                string // in which commands run
	inputs             input.Inputs
	extra              []executor.Mount // that the file declares
}

// Image is what commands need to know of the image that they run in.
type Image struct {
	ID       string    // sha256:…, as the engine names it
	Site     string    // directory in which its Python finds packages; empty: it has none
	Env      []string  // of its configuration, as NAME=value
	Packages []Package // that were installed in it
}

// Package is a Python package in an image, as it was found there after it was installed.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Info    string `json:"info"`   // its .dist-info directory, absolute
	Record  string `json:"record"` // SHA-256 of the RECORD in it

	Whole bool `json:"whole,omitempty"` // every file that RECORD lists is read before a benchmark starts
	// files beside Info that fixes have changed since: they are not what RECORD says
	Patched []string `json:"patched,omitempty"`
}

// enter lets the commands run in containers of the place's image. From now on, variables and references are paths in
// there.
func (s *Shell) enter(r input.Refs, at Place) error {
	home, tmp, err := workdir.PrivateDirs(s.env.Scratch)
	if err != nil {
		return err
	}
	s.box = &box{image: at.Image, home: home, tmp: tmp, out: at.Out, dir: InsideWork, inputs: input.Inputs{}}
	s.box.Container = executor.Container{
		Image: at.Image.ID, Labels: map[string]string{container.LabelNode: at.Node.String()},
		User:   fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		Memory: at.Limits.Memory, Outward: at.Network,
	}
	if at.InOut {
		s.box.dir = insideOut
	}
	if l := s.env.Lease; l != nil {
		s.box.CPUs = coreList(l.Cores)
		for _, d := range l.GPUs {
			s.box.GPUs = append(s.box.GPUs, d.UUID)
		}
	}
	s.path = s.box.inputs.Paths(r, s.env)
	s.vars["OUT"], s.vars["SRC"], s.vars["SITE"] = insideOut, InsideWork, InsideWork
	if at.Image.Site != "" && !at.InTree {
		s.vars["SITE"] = at.Image.Site
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

// mounts are what a command sees of the host: its directories, and what it was told of.
func (b *box) mounts(work string) []executor.Mount {
	own := []executor.Mount{
		{Host: work, Inside: InsideWork, Writable: true}, {Host: b.out, Inside: insideOut, Writable: true},
		{Host: b.home, Inside: insideHome, Writable: true},
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if !slices.ContainsFunc(b.extra, func(m executor.Mount) bool { return path.Clean(m.Inside) == dir }) {
			own = append(own, executor.Mount{Host: b.tmp, Inside: dir, Writable: true})
		}
	}
	return slices.Concat(own, b.inputs.Mounts(), b.extra)
}

// OnHost is where something lies on the host that commands know by this path, with variables and references in it. What
// lies in the image keeps its path.
func (s *Shell) OnHost(text hclspec.Text) string {
	name := s.variables(text.Expand(s.path))
	if s.box == nil {
		return name
	}
	for _, m := range s.box.mounts(s.dir) {
		if m.Host == "" {
			continue
		}
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
func (s *Shell) runner() executor.Executor {
	if s.box != nil {
		return s.config.Containers
	}
	return s.config.Host
}
