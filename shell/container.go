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

// Directories of commands in containers. They are the same on every machine, and those of inputs follow from the node's
// key, so that no path of a host gets into results.
const (
	InsideWork = "/benchgraph/work" // the working directory
	insideOut  = "/benchgraph/out"
	insideHome = "/benchgraph/home"
)

// usualPath is the PATH of commands in an image without one.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// box describes the containers of a shell's commands; each command has one of its own.
type box struct {
	executor.Container // the common part
	image              *Image
	home, tmp, out     string // directories of the host
	dir                string // working directory
	inputs             input.Inputs
	extra              []executor.Mount // declared mounts
}

// Image is the part of an image's record that commands need.
type Image struct {
	ID       string    // sha256:…, as the engine names it
	Site     string    // directory of its Python packages; empty: none
	Env      []string  // of its configuration, as NAME=value
	Packages []Package // that benchgraph installed in it
}

// Package is a Python package in an image, as it was right after its installation.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Info    string `json:"info"`   // its .dist-info directory, absolute
	Record  string `json:"record"` // SHA-256 of the RECORD in it

	Whole bool `json:"whole,omitempty"` // read every file that RECORD lists before a benchmark starts
	// files beside Info that fixes have changed: RECORD is not right for them
	Patched []string `json:"patched,omitempty"`
}

// enterContainer makes the commands run in containers of the place's image. Variables and references become paths in
// these containers.
func (s *Shell) enterContainer(r input.Refs, at Place) error {
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

// coreList formats cores as container engines read them.
func coreList(cores []int) string {
	text := make([]string, len(cores))
	for i, core := range cores {
		text[i] = strconv.Itoa(core)
	}
	return strings.Join(text, ",")
}

// mounts returns the mounts of a command: its directories, its inputs and the declared mounts.
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

// OnHost expands a path of the commands' and returns the place on the host. A path in the image is returned as it is.
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

// environ returns the environment of commands without the node's own variables: the image's, and a writable home. USER
// is set, since the image may have no user with their number.
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

// runner returns the executor of the shell's commands.
func (s *Shell) runner() executor.Executor {
	if s.box != nil {
		return s.config.Containers
	}
	return s.config.Host
}
