package repro

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// contained returns a command in a container of its own as a line.
func (s *script) contained(i int, step *transcript.Step, place *transcript.Place) string {
	c := place.Container
	line := "docker run --rm --init --pids-limit 32768 --ipc private --read-only" + s.options(c)
	for _, dir := range []string{"/tmp", "/var/tmp", "/run"} {
		at := func(m executor.Mount) bool { return path.Clean(m.Inside) == dir }
		if !slices.ContainsFunc(c.Mounts, at) {
			line += " --tmpfs " + dir + ":rw,exec,nosuid,nodev,mode=1777"
		}
	}
	if c.User != "" {
		line += ` --user "$(id -u):$(id -g)"`
	}
	switch {
	case s.servers[step.Beside]:
		line += fmt.Sprintf(` --network "container:repro-$$-%d"`, step.Beside)
	case c.Outward:
		line += " --hostname benchgraph"
	default:
		line += " --network none --hostname benchgraph --add-host benchgraph:127.0.0.1"
	}
	switch size := c.Shm; {
	case size > 0:
		line += fmt.Sprintf(" --shm-size %d", size)
	case c.Memory > 0:
		line += fmt.Sprintf(" --shm-size %d", c.Memory/2)
	default: // half of the memory of the machine
		line += ` --shm-size "$(awk '/MemTotal/ { print int($2 / 2) "k" }' /proc/meminfo)"`
	}
	for _, v := range place.Env {
		if !strings.Contains(v, "=") && identifier.MatchString(v) {
			s.line("export %s", s.variable(v))
		}
		line += " --env " + s.word(v)
	}
	if step.Server != nil {
		line += fmt.Sprintf(` --name "repro-$$-%d"`, i+1)
	}
	line += " --workdir " + s.word(place.Dir) + " --entrypoint " + s.word(step.Argv[0])
	return line + " " + s.word(c.Image) + " " + s.words(step.Argv[1:])
}

// options returns the options that every container may have.
func (s *script) options(c *transcript.Container) string {
	line := " --cap-drop ALL --security-opt no-new-privileges:true"
	for _, name := range c.Caps {
		line += " --cap-add " + sh.Quote(name)
	}
	if c.CPUs != "" {
		line += " --cpuset-cpus " + sh.Quote(c.CPUs)
	}
	if c.Memory > 0 {
		line += fmt.Sprintf(" --memory %d --memory-swap %[1]d", c.Memory)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		line += " --ulimit " + sh.Quote(fmt.Sprintf("%s=%d", name, c.Ulimits[name]))
	}
	for _, name := range c.Devices {
		line += " --device " + sh.Quote(name)
	}
	if len(c.GPUs) > 0 {
		line += " --gpus " + sh.Quote(`"device=`+strings.Join(c.GPUs, ",")+`"`)
	}
	for _, m := range c.Mounts {
		text := "type=bind,source=" + m.Host
		if m.Host == "" {
			text = "type=volume,source=" + m.Volume
		}
		if text += ",target=" + m.Inside; !m.Writable {
			text += ",readonly"
		}
		line += " --mount " + s.word(text)
	}
	return line
}

// keep writes a command in a container that becomes an image.
func (s *script) keep(step *transcript.Step, place *transcript.Place) {
	c := place.Container
	line := "docker create" + s.options(c)
	if c.User != "" {
		line += " --user " + sh.Quote(c.User)
	}
	if !c.Outward {
		line += " --network none"
	}
	// docker commit cannot remove an entry point that the container has.
	line += " --workdir " + s.word(place.Dir) + " --entrypoint '' " + s.word(c.Image)
	s.line("c=$(%s %s)", line, s.words(step.Argv))
	for _, f := range step.Files {
		if f.SHA256 != "" {
			s.used["missing"] = true
			s.line("missing %s %s", s.word(f.SHA256), s.word(f.Path))
			continue
		}
		s.used["lay"], s.used["text"] = true, true
		mode := "0644"
		if f.Executable {
			mode = "0755"
		}
		if f.From != "" {
			s.line("lay %s %s %s", s.word(f.From), s.word(f.Path), mode)
			continue
		}
		s.text(f.Content, `"$work"/file`)
		s.line(`lay "$work"/file %s %s`, s.word(f.Path), mode)
	}
	s.line(`docker start -a "$c" >&2`)
}
