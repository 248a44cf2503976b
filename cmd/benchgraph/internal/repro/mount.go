package repro

import (
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// mounts are the mounts with these addresses.
func (s *script) mounts(addresses []hclspec.Address) []hclspec.Mount {
	var all []hclspec.Mount
	for _, a := range addresses {
		for _, m := range s.Spec.Mounts {
			if m.Address == a {
				all = append(all, m)
			}
		}
	}
	return all
}

// source is the directory of a mount as a word of the script..
func (s *script) source(m hclspec.Mount) string {
	switch {
	case m.Source == "~" || strings.HasPrefix(m.Source, "~/"):
		return `"$HOME"` + shell.Quote(strings.TrimPrefix(m.Source, "~"))
	case strings.HasPrefix(m.Source, "/"):
		return shell.Quote(m.Source)
	}
	return shell.Quote(s.Spec.Dir + "/" + m.Source)
}

// bind is the argument of docker's --mount.
func (s *script) bind(m hclspec.Mount) string {
	kind, source := "type=bind,source=", s.source(m)
	if m.Volume {
		kind, source = "type=volume,source=", shell.Quote(m.Source)
	}
	access := ",readonly"
	if m.Writable {
		access = ""
	}
	return kind + source + shell.Quote(",target="+m.Target+access)
}
