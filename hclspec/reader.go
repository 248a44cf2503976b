package hclspec

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// reader reads the attributes of one block for one instance, including references.
type reader struct {
	eval.Reader
	l     *loader
	owner Address // node to which references that are read belong
}

// with returns a reader for the instance of a key, with its value of each.
func (r reader) with(key string, each cty.Value) reader {
	r.Reader = r.With(key, each)
	return r
}

// nested returns a reader of a block inside this one.
func (r reader) nested(b *eval.Block) reader {
	r.Block = b
	return r
}

// text reads a text that may hold references to nodes that have files.
func (r reader) text(name string) Text {
	v, ok := r.As(name, cty.String, "a text")
	if !ok {
		return nil
	}
	return r.parts(name, v)
}

func (r reader) parts(name string, v cty.Value) Text {
	if v.IsNull() {
		r.Fail(r.At(name), "Null value", "%s holds null where a text is expected.", name)
		return nil
	}
	text, ok := splitTokens(v.AsString())
	if !ok {
		r.Fail(r.At(name), "Reference taken apart",
			"%s holds a part of a reference. Functions cannot look into references.", name)
		return nil
	}
	if a, found := text.pathless(); found {
		r.Fail(r.At(name), "Reference without files",
			"%s holds %s, which has no files that a path could lead to. References in texts are to %s.",
			name, a, strings.Join(withPaths(), ", "))
		return nil
	}
	for _, a := range text.Refs() {
		r.l.use(r.owner, a, r.At(name))
	}
	return text
}

func (r reader) texts(name string) []Text {
	var out []Text
	for _, v := range r.Elements(name, cty.String, "a list of texts") {
		out = append(out, r.parts(name, v))
	}
	return out
}

// mapOf reads a map of texts; read converts each value. A null value removes an entry.
func mapOf[T any](r reader, name string, read func(name string, v cty.Value) T) map[string]T {
	all := r.Map(name, cty.String, "a map of texts", "a text")
	if all == nil {
		return nil
	}
	out := map[string]T{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !all[key].IsNull() {
			out[key] = read(name, all[key])
		}
	}
	return out
}

// env reads a map of environment variables.
func (r reader) env() map[string]Text {
	vars := mapOf(r, "env", r.parts)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		r.EnvName("env", name)
	}
	return vars
}

func (r reader) secrets() []string {
	names := r.Strs("secrets")
	for _, name := range names {
		r.EnvName("secrets", name)
	}
	return names
}

// command reads a command: a text for the shell, or a list as argv.
func (r reader) command(name string) Command {
	v, ok := r.Value(name)
	if !ok {
		return Command{}
	}
	c := Command{Range: r.At(name)}
	empty := !v.Type().IsObjectType() && !v.Type().IsMapType() && v.CanIterateElements() && v.LengthInt() == 0
	if v.Type().IsPrimitiveType() {
		c.Shell = r.text(name)
		empty = v.Type() == cty.String && strings.TrimSpace(v.AsString()) == ""
	} else {
		c.Argv = r.texts(name)
	}
	if empty {
		r.Fail(c.Range, "Empty command", "%s is empty.", name)
	}
	return c
}

// ref reads a reference to one node of the given kinds; zero: there is none.
func (r reader) ref(name string, kinds ...string) Address {
	v, ok := r.Value(name)
	if !ok {
		return Address{}
	}
	return r.only(name, v, kinds)
}

// only returns the reference in a value, which must be a single one.
func (r reader) only(name string, v cty.Value, kinds []string) Address {
	if v.IsNull() || !v.Type().IsObjectType() || v.LengthInt() == 0 {
		return r.address(name, v, kinds)
	}
	if all, _ := r.flatten(name, v, kinds); len(all) > 0 {
		r.Fail(r.At(name), "Which instance?",
			"%s.%s has for_each, so %s must choose one of its instances: %s.%s[each.key].",
			all[0].Kind, all[0].Name, name, all[0].Kind, all[0].Name)
	}
	return Address{}
}

// refs reads references to nodes of the given kinds; a block with for_each stands for all its instances.
func (r reader) refs(name string, kinds ...string) []Address {
	if r.l.references > maxReferences {
		return nil
	}
	v, ok := r.Value(name)
	if !ok {
		return nil
	}
	all, _ := r.flatten(name, v, kinds)
	return all
}

// flatten returns the distinct references in a value. ok reports whether the value holds nothing else.
func (r reader) flatten(name string, v cty.Value, kinds []string) (all []Address, ok bool) {
	if v.IsNull() || v.Type() == cty.String || !v.CanIterateElements() {
		a := r.address(name, v, kinds)
		if a == (Address{}) {
			return nil, false
		}
		return []Address{a}, true
	}
	ok = true
	seen := map[Address]bool{}
	instances := v.Type().IsObjectType() || v.Type().IsMapType()
	for _, v := range v.Elements() {
		if r.l.references > maxReferences {
			return nil, false
		}
		found, right := r.flatten(name, v, kinds)
		if !right && instances {
			return nil, false // the others are wrong for the same reason
		}
		ok = ok && right
		for _, a := range found {
			if !seen[a] {
				seen[a] = true
				all = append(all, a)
			}
		}
	}
	return all, ok
}

func (r reader) address(name string, v cty.Value, kinds []string) Address {
	var a Address
	if !v.IsNull() && v.Type() == cty.String {
		a, _ = onlyToken(v.AsString())
	}
	if slices.Contains(kinds, a.Kind) {
		r.l.use(r.owner, a, r.At(name))
		return a
	}
	want := "a reference such as " + kinds[0] + ".NAME"
	if len(kinds) > 1 {
		want = "a reference to one of " + strings.Join(kinds, ", ")
	}
	if a == (Address{}) {
		r.Fail(r.At(name), "Not a reference", "%s must be %s, not %s.", name, want, eval.Describe(v))
	} else {
		r.Fail(r.At(name), "Wrong kind of reference", "%s must be %s, not %s.", name, want, a)
	}
	return Address{}
}

// data reads the nodes that are laid into the working directory, sorted by name.
func (r reader) data() []Data {
	v, ok := r.Value("data")
	if !ok {
		return nil
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		r.Fail(r.At("data"), "Wrong type",
			"data must be a map from names to references, { \"name\" = fetch.x }, not %s.", eval.Describe(v))
		return nil
	}
	kinds, seen := withPaths(), map[string]string{}
	out := slices.Grow([]Data(nil), v.LengthInt())
	for key, value := range v.Elements() { // sorted by name
		name := key.AsString()
		clean, err := project.Clean(name)
		if err != nil || clean == "." {
			r.Fail(r.At("data"), "Invalid name", "%q is not a name inside the working directory.", name)
			continue
		}
		if other, twice := seen[clean]; twice {
			r.Fail(r.At("data"), "Duplicate name",
				"%q and %q are the same place in the working directory. Remove one of them.", other, name)
			continue
		}
		seen[clean] = name
		a := r.only("data", value, kinds)
		if a == (Address{}) {
			continue
		}
		bare := strings.TrimRight(name, "/")
		out = append(out, Data{Name: bare, Ref: a, Tree: bare != name})
		if bare == name && a.Kind == "source" {
			r.Fail(r.At("data"), "Not one file",
				"%s is a tree of files. Write the name with a slash at its end: { %q = … }.", a, name+"/")
		}
		of := r.l.byName[Address{Kind: a.Kind, Name: a.Name}]
		if bare == name && !r.l.shadow && of != nil && of.Attrs["outputs"] != nil {
			r.l.laid = append(r.l.laid, laid{out[len(out)-1], r.owner, r.At("data")})
		}
	}
	return out
}

// Sandboxes are the values of sandbox: no sandbox; a sandbox if the machine supports one; a sandbox or a refusal.
var Sandboxes = []string{"none", "default", "required"}

// Sandboxed returns the values of sandbox in all blocks with commands, each with the image of the commands. Blocks
// without the attribute have an empty value.
func (s *Spec) Sandboxed() iter.Seq2[string, Address] {
	return func(yield func(string, Address) bool) {
		for i := range s.Benchmarks {
			if b := &s.Benchmarks[i]; !yield(b.Sandbox, b.Image) {
				return
			}
		}
		for i := range s.Tasks {
			if t := &s.Tasks[i]; !yield(t.Sandbox, t.Image) {
				return
			}
		}
		for i := range s.Wheels {
			if b := s.Wheels[i].Build; b != nil && !yield(b.Sandbox, b.Image) {
				return
			}
		}
		for i := range s.KnownIssues {
			if !yield(s.KnownIssues[i].Sandbox, Address{}) {
				return
			}
		}
	}
}

// work reads the environment and limits of a command, for a block that runs it.
func (r reader) work(command Command) Work {
	w := Work{
		Image: r.ref("image", "image"), Command: command, Env: r.env(), Secrets: r.secrets(), Mounts: r.mounts(),
		Fixes: r.refs("fixes", "fix"), Network: r.Bool("network"), Sandbox: r.sandbox(), Limits: r.limits(),
	}
	r.arguments(w.Command, w.Secrets)
	return w
}

// sandbox reads the attribute of a block; empty: it is not set. In an image it has no effect.
func (r reader) sandbox() string { return r.Choice("sandbox", "", Sandboxes...) }

// limits reads the limits of a node.
func (r reader) limits() Limits {
	return Limits{CPUs: int(r.Whole("cpus", 1, 0)), Memory: r.Size("memory"), Disk: r.Size("disk"),
		Timeout: r.Duration("timeout", 0), Estimate: r.Duration("estimate", 0)}
}
