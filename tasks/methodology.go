package tasks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// methodology describes how a member was measured: all that must be equal before its numbers are compared with another
// member's. It omits the measured artefacts themselves, and the hardware, which each sample records.
func (p *Drawing) methodology(m Member) methodology.Description {
	fields := p.procedure(m, p.tracesOf)
	add := func(name, value string) { fields = append(fields, methodology.Field{Name: name, Value: value}) }
	add("metrics", fmt.Sprint(m.Bench.Metrics.Format, " ", m.Bench.Metrics.File))
	if p.SandboxWord(m.Bench.Sandbox) == "default" && m.Bench.Image == (hclspec.Address{}) &&
		p.measuredIn(m.Bench) == executor.Unconfined {
		add("sandbox", "none: this machine makes none")
	}
	for _, c := range m.Bench.Metrics.Custom {
		add("metric "+c.Name, strings.Join([]string{c.Match, c.JSON, c.File, c.Unit}, " "))
	}
	return methodology.Description{Fields: fields}
}

// procedure returns the part of a methodology that determines the raw output; the rest says how the output is read.
// content returns the identity of a node's result.
func (p *Drawing) procedure(m Member, content func(hclspec.Address) string) []methodology.Field {
	b := m.Bench
	var fields []methodology.Field
	add := func(name, value string) { fields = append(fields, methodology.Field{Name: name, Value: value}) }
	neutral := p.sameFor(content)
	add("benchmark", b.Address.Name)
	add("command", sample.Expand(b.Command, neutral))
	if b.Client != (hclspec.Address{}) {
		add("client", content(b.Client))
	}
	for _, item := range b.Data {
		add("data "+item.Label(), neutral(item.Ref))
	}
	addEnv := func(prefix string, env map[string]hclspec.Text) {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			add(prefix+name, env[name].Expand(neutral))
		}
	}
	addEnv("env ", b.Env)
	if srv := b.Server; srv != nil {
		add("server", sample.Expand(srv.Command, neutral))
		addEnv("server env ", srv.Env)
		for _, l := range shell.LimitsOf(srv) {
			add("server "+l[0], l[1])
		}
	}
	for _, m := range MountsAt(p.Spec, b.Mounts) {
		add("mount "+m.Target, m.Identity)
	}
	for _, c := range cachesAt(p.Spec, b.Caches) {
		add("cache "+c.Path, "filled by a run that is not measured")
	}
	if fill := sample.Expand(b.Fill, neutral); len(b.Caches) > 0 && fill != sample.Expand(b.Command, neutral) {
		add("fill", fill)
	}
	if b.Image != (hclspec.Address{}) {
		add("runs in", neutral(b.Image))
		if client := m.client; client != (hclspec.Address{}) {
			add("client image", content(client))
		}
		add("network", strconv.FormatBool(b.Network))
		add("limits", fmt.Sprintf("%d cores, %d bytes", b.CPUs, b.Memory))
	}
	switch p.measuredIn(b) {
	case executor.Namespaces:
		add("sandbox", "namespaces of its own")
		add("network", strconv.FormatBool(b.Network))
	case executor.Landlock:
		add("sandbox", "Landlock alone: this machine makes no namespaces")
		add("network", strconv.FormatBool(b.Network))
	}
	if p.keepsCores(b) {
		add("limits", fmt.Sprintf("%d cores", b.CPUs))
	}
	if c := b.Canary; c != nil {
		add("canary", sample.Expand(c.Command, neutral))
	}
	add("warmup", strconv.Itoa(b.Design.Warmup))
	if n := b.Design.Passes(); n > 1 { // blocks from before this field have none
		add("repeat", strconv.Itoa(n))
	}
	add("pairing", b.Design.Pairing)
	if b.GPUs != nil {
		add("devices", fmt.Sprintf("%d × %s, %d bytes", b.GPUs.Count, b.GPUs.Model, b.GPUs.Memory))
		if b.GPUs.SMClock > 0 {
			add("sm clock", fmt.Sprintf("locked at %d MHz", b.GPUs.SMClock))
		}
	}
	for _, f := range m.allFixes() {
		if f.Fix.Effect != "neutral" {
			add("fix "+f.Fix.Address.Name, f.Fix.Effect)
		}
	}
	return fields
}

// sameFor wraps content so that variants measured in the same way get equal fields: a candidate's own artefact, which
// is measured, is named by its block alone.
func (p *Drawing) sameFor(content func(hclspec.Address) string) func(hclspec.Address) string {
	return func(a hclspec.Address) string {
		if p.ownArtefact(a) {
			return "${" + a.Kind + "." + a.Name + "}"
		}
		// data that each variant has for itself: the keys tell whether variants have the same
		if a.Keyed && p.candidates[a.Key] != nil {
			return strings.TrimSpace("${" + a.Kind + "." + a.Name + "} " + p.Work[a.String()])
		}
		return content(a)
	}
}

// tracesOf returns the identity of a node's result: the digest of a download, the git tree of a source, the address of
// any other node.
func (p *Facts) tracesOf(a hclspec.Address) string {
	switch a.Kind {
	case "fetch":
		for _, f := range p.Spec.Fetches {
			if f.Address == a && f.SHA256 != "" {
				return "sha256:" + f.SHA256
			}
		}
	case "source":
		for _, s := range p.Spec.Sources {
			if s.Address == a && s.Patch == "" {
				return "tree:" + p.Trees[s.Rev]
			}
		}
	}
	return a.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// model compiles a pattern for device names, once for each text: requests with equal patterns must compare as equal.
func (s *Seen) model(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	if s.models[pattern] == nil {
		s.models[pattern] = regexp.MustCompile(pattern)
	}
	return s.models[pattern]
}
