package tasks

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/wheel"
)

// pretendVersion is the variable from which setuptools-scm reads the version of a tree without .git.
const pretendVersion = "SETUPTOOLS_SCM_PRETEND_VERSION"

// versioned returns the environment of a build with the version of its revision, unless the file sets a version. The
// version is in no key: candidates that share a build have different versions, and the first to build sets it.
func (t *buildTask) versioned(ctx context.Context, log io.Writer) map[string]hclspec.Text {
	for name := range t.of.Env {
		if strings.HasPrefix(name, pretendVersion) {
			return t.of.Env
		}
	}
	if t.rev == "" {
		return t.of.Env
	}
	version := ""
	mirror, err := t.p.Mirror(ctx, t.repo)
	if err == nil {
		var said map[string]string
		if said, err = mirror.DescribeHeld(ctx, []string{t.rev}); err == nil {
			version = wheel.Version(said[t.rev])
		}
	}
	if err != nil {
		fmt.Fprintf(log, "no version of %s is known: %v\n", ShortRev(t.rev), err)
	}
	if version == "" {
		return t.of.Env
	}
	env := map[string]hclspec.Text{pretendVersion: {{Literal: version}}}
	maps.Copy(env, t.of.Env)
	return env
}
