package preflight

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/requirement"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

// registries are the files in which engines list their architectures.
var registries = []string{
	"vllm/model_executor/models/registry.py", "vllm/model_executor/models/__init__.py",
	"vllm/model_executor/model_loader.py", "cacheflow/models/model_utils.py",
}

// architecture checks whether the engine of a candidate has the model's architecture.
func (c *checker) architecture(b *Benchmark, p *program.Program, m *requirement.Model) {
	t := b.installed(p)
	if t.IsZero() || m.Architecture == "" {
		return
	}
	names := strings.Split(m.Architecture, "|")
	found, where, sure := false, "", true
	generic := false
	for _, file := range registries {
		s, _ := c.files.Stat(t, file)
		sure = sure && s != revision.Unknown
		if s != revision.IsFile {
			continue
		}
		content, _, ok := c.files.Read(t, file)
		sure = sure && ok
		text := string(content)
		listed := strings.Contains(text, "ForCausalLM\"") || strings.Contains(text, "ForCausalLM'") ||
			strings.Contains(text, "ForCausalLM,")
		if !listed {
			continue
		}
		where = file
		generic = generic || strings.Contains(text, "TransformersForCausalLM") ||
			strings.Contains(text, "_TRANSFORMERS")
		for _, name := range names {
			found = found || strings.Contains(text, name)
		}
	}
	at := " at " + short(t.Rev)
	switch {
	case !sure:
		c.add(Architecture, Unverified,
			names[0]+": the list of architectures is changed by the patch, or cannot be read", "")
	case where == "":
		c.sglang(t, names)
	case found:
		c.add(Architecture, OK, fmt.Sprintf("%s is in %s%s", names[0], where, at), "")
		c.rope(t, m)
	case generic:
		c.add(Architecture, Warn,
			fmt.Sprintf("%s is not in %s%s, which can run some models of transformers as they are", names[0], where,
				at), "measure a revision that has the model, or another model")
	default:
		c.add(Architecture, Fail, fmt.Sprintf("%s is not in %s%s", names[0], where, at),
			"measure a revision that has the model, or another model")
	}
}

// sglang looks for an architecture in SGLang's files, each of which defines its own.
func (c *checker) sglang(t revision.Tree, names []string) {
	const dir = "python/sglang/srt/models"
	entries, known := c.files.List(t, dir)
	if !known || entries == nil {
		return
	}
	for name, e := range entries {
		if e.Dir || !strings.HasSuffix(name, ".py") {
			continue
		}
		content, _, ok := c.files.Read(t, path.Join(dir, name))
		if !ok {
			continue
		}
		if text := string(content); slices.ContainsFunc(names, func(n string) bool {
			return strings.Contains(text, "class "+n+"(") || strings.Contains(text, "class "+n+":")
		}) {
			c.add(Architecture, OK, fmt.Sprintf("%s is in %s at %s", names[0], path.Join(dir, name), short(t.Rev)), "")
			return
		}
	}
	c.add(Architecture, Warn, fmt.Sprintf("no file of %s at %s has %s", dir, short(t.Rev), names[0]),
		"measure a revision that has the model, or another model")
}

// rope checks whether an engine knows how a model scales its positions.
func (c *checker) rope(t revision.Tree, m *requirement.Model) {
	const file = "vllm/model_executor/layers/rotary_embedding.py"
	if m.Rope == "" {
		return
	}
	if content, _, ok := c.files.Read(t, file); ok && !strings.Contains(string(content), `"`+m.Rope+`"`) {
		c.add(Architecture, Warn, fmt.Sprintf("%s at %s does not know the position scaling %q of %s", file,
			short(t.Rev), m.Rope, m.Name), "measure a revision that knows it, or another model")
	}
}
