package tasks

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// pretendVersion is the variable from which setuptools-scm takes the version of a tree without .git.
const pretendVersion = "SETUPTOOLS_SCM_PRETEND_VERSION"

// versioned is the environment of a build with the version of its revision, unless the file declares one. It is no part
// of the key: candidates that share a build have different versions, and the one that builds gives its own.
func (t *buildTask) versioned(ctx context.Context, log io.Writer) map[string]hclspec.Text {
	for name := range t.build.Env {
		if strings.HasPrefix(name, pretendVersion) {
			return t.build.Env
		}
	}
	if t.rev == "" {
		return t.build.Env
	}
	version := ""
	mirror, err := t.p.mirror(ctx, t.repo)
	if err == nil {
		var said map[string]string
		if said, err = mirror.DescribeHeld(ctx, []string{t.rev}); err == nil {
			version = versionOf(said[t.rev])
		}
	}
	if err != nil {
		fmt.Fprintf(log, "no version of %s is known: %v\n", short(t.rev), err)
	}
	if version == "" {
		return t.build.Env
	}
	env := map[string]hclspec.Text{pretendVersion: {{Literal: version}}}
	maps.Copy(env, t.build.Env)
	return env
}

var (
	described  = lazyregexp.New(`^(?:[0-9A-Za-z_-]+-)?[vV]?([0-9].*)-([0-9]+)-g([0-9a-f]+)$`)
	release    = lazyregexp.New(`^[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?$`)
	developing = lazyregexp.New(`\.dev[0-9]+$`)
	lastNumber = lazyregexp.New(`[0-9]+$`)
)

// versionOf is the version that setuptools-scm makes of what git describe says (TAG-NUMBER-gHASH): the tag's own, or
// the next one in the making. It is empty when the tag is no version.
func versionOf(text string) string {
	m := described().FindStringSubmatch(text)
	if m == nil || !release().MatchString(m[1]) {
		return ""
	}
	version, distance, hash := m[1], m[2], m[3]
	if distance == "0" {
		return version
	}
	if base := developing().ReplaceAllString(version, ""); base != version {
		return fmt.Sprintf("%s.dev%s+g%s", base, distance, hash)
	}
	last := lastNumber().FindString(version)
	n, err := strconv.Atoi(last)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s%d.dev%s+g%s", strings.TrimSuffix(version, last), n+1, distance, hash)
}
