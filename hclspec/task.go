package hclspec

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func taskSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "task", Label: true,
		Key: []string{"inputs", "command", "env", "data", "image", "source", "needs", "outputs", "fixes", "mounts",
			"network", "sandbox"},
		Free: []string{"for_each", "secrets", "cpus", "memory", "disk", "timeout", "estimate", "quiet", "description",
			"artefact"},
	}
}

func decodeTask(r reader, b Block) {
	r.Need("command", "the command to run, for instance command = \"make\"")
	r.Str("description")
	t := Task{
		Block: b, Work: r.work(r.command("command")), Inputs: r.inputs(), Data: r.data(),
		Source:  r.ref("source", "source"),
		Needs:   r.refs("needs", "wheel", "image", "fetch", "task", "source", "benchmark", "compare", "report"),
		Outputs: r.Globs("outputs"), Quiet: r.Bool("quiet"), Artefact: r.Bool("artefact"),
	}
	r.smuggled(t.Command, t.Env)
	r.l.spec.Tasks = append(r.l.spec.Tasks, t)
}

// inputs returns the files that the globs of inputs match.
func (r reader) inputs() []string {
	patterns := r.Globs("inputs")
	found, err := r.l.dir.Select(patterns)
	if err != nil {
		r.Fail(r.At("inputs"), "Invalid inputs", "%s.", err)
	}
	for _, i := range found.Unmatched {
		r.Fail(r.AtItem("inputs", i), "No such input", "%q matches no file below the project's directory.", patterns[i])
	}
	return found.Files
}

// smuggled reports files of the project that a command or a variable names by an absolute path: the command would read
// them although they are in no key.
func (r reader) smuggled(c Command, env map[string]Text) {
	report := func(at hcl.Range, t Text) {
		for _, part := range t {
			if name := r.l.projectFile(part.Literal); name != "" {
				glob := name
				if _, err := r.l.dir.Size(name); err != nil {
					glob = path.Join(name, "**")
				}
				r.Fail(at, "File of the project outside the inputs",
					"%q belongs to the project and is named by its absolute path. It is no part of the key then, so "+
						"nothing is made anew when it changes. Write inputs = [%q] and use the path relative to the "+
						"project. A file that the command makes belongs into $OUT.", name, glob)
				return
			}
		}
	}
	report(c.Range, c.Shell)
	for _, word := range c.Argv {
		report(c.Range, word)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		report(r.At("env"), env[name])
	}
}

// projectFile returns the first file or directory of the project, relative to the project, that a text names by a path
// that abspath made; empty: there is none.
func (l *loader) projectFile(text string) string {
	for _, name := range l.dir.Named(text) {
		rel, err := filepath.Rel(l.dir.Home(), name)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		rel = filepath.ToSlash(rel)
		if top, _, _ := strings.Cut(rel, "/"); top != ".benchgraph" && l.dir.Has(rel) {
			return rel
		}
	}
	return ""
}
