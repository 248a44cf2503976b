package hclspec

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// reader reads the attributes of one block for one instance. Every mistake is recorded where it is found; the zero value
// is returned for what is absent, null or wrong, so that a decoder reads on to the next mistake.
type reader struct {
	l        *loader
	block    *eval.Block
	ctx      *hcl.EvalContext
	bad      map[hcl.Expression]bool // expressions that were reported when the names in them were looked up
	owner    Address                 // what the references that are read belong to
	instance string                  // key of the instance, for diagnostics
}

func (r reader) fail(at hcl.Range, summary, detail string, args ...any) {
	r.l.scope.Diags.Error(r.instance, at, summary, fmt.Sprintf(detail, args...))
}

// nested is a reader of a block inside this one.
func (r reader) nested(b *eval.Block) reader {
	r.block = b
	return r
}

// at is the place of an attribute's value; of the block where there is none.
func (r reader) at(name string) hcl.Range {
	if attr := r.block.Attrs[name]; attr != nil {
		return attr.Expr.Range()
	}
	return r.block.Range
}

// atItem is the place of one item of a list, where the list is written out.
func (r reader) atItem(name string, i int) hcl.Range {
	if attr := r.block.Attrs[name]; attr != nil {
		if items, diags := hcl.ExprList(attr.Expr); !diags.HasErrors() && i < len(items) {
			return items[i].Range()
		}
	}
	return r.at(name)
}

// has says whether the attribute stands in the file, whatever its value.
func (r reader) has(name string) bool { return r.block.Attrs[name] != nil }

// need reports an attribute that is missing; what completes the sentence "x needs name: …".
func (r reader) need(name, what string) {
	if !r.has(name) {
		r.fail(r.block.Range, "Missing "+name, "%s needs %s: %s.", r.title(), name, what)
	} else if v := r.evaluate(name); v.IsKnown() && v.IsNull() {
		r.fail(r.at(name), "Missing "+name, "%s needs %s, and the value is null: %s.", r.title(), name, what)
	}
}

func (r reader) title() string {
	if r.block.Name == "" {
		return "A " + r.block.Schema.Kind + " block"
	}
	return fmt.Sprintf("%s %q", r.block.Schema.Kind, r.block.Name)
}

func (r reader) evaluate(name string) cty.Value {
	attr := r.block.Attrs[name]
	switch {
	case attr == nil:
		return cty.NullVal(cty.DynamicPseudoType)
	case r.bad[attr.Expr]:
		return cty.DynamicVal
	}
	return r.l.scope.Value(attr.Expr, r.ctx, r.instance)
}

// value is the attribute's value; false when it is absent, null or not known because of another mistake.
func (r reader) value(name string) (cty.Value, bool) {
	v := r.evaluate(name)
	return v, v.IsWhollyKnown() && !v.IsNull()
}

// as converts the attribute's value; want names what is expected, for the diagnostic.
func (r reader) as(name string, ty cty.Type, want string) (cty.Value, bool) {
	v, ok := r.value(name)
	if !ok {
		return v, false
	}
	converted, err := convert.Convert(v, ty)
	if err != nil || converted.IsNull() {
		r.fail(r.at(name), "Wrong type", "%s must be %s, not %s.", name, want, describe(v))
		return v, false
	}
	return converted, true
}

// describe says for a diagnostic what a value is.
func describe(v cty.Value) string {
	if v.Type() == cty.String && !v.IsNull() {
		if text, ok := splitTokens(v.AsString()); ok && len(text.Refs()) > 0 {
			return "a reference to " + text.Refs()[0].String()
		}
		return fmt.Sprintf("the text %q", shorten(v.AsString()))
	}
	return v.Type().FriendlyName()
}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:57] + "…"
	}
	return s
}

func (r reader) boolean(name string) bool {
	v, ok := r.as(name, cty.Bool, "true or false")
	return ok && v.True()
}

// when is the condition attribute of the name; a null, as from a parameter that a commit does not have, does not hold.
func (r reader) when(name string) bool { return !r.has(name) || r.boolean(name) }

// str is a text without references.
func (r reader) str(name string) string {
	v, ok := r.as(name, cty.String, "a text")
	if !ok {
		return ""
	}
	return r.literal(name, v)
}

func (r reader) literal(name string, v cty.Value) string {
	if v.IsNull() {
		r.fail(r.at(name), "Null value", "%s holds null where a text is expected.", name)
		return ""
	}
	if strings.Contains(v.AsString(), funcs.Mark) {
		r.fail(r.at(name), "Reference not possible here", "%s must be a plain text; it cannot hold %s.", name, describe(v))
		return ""
	}
	return v.AsString()
}

// strs is a list of texts; a single text counts as a list of one.
func (r reader) strs(name string) []string {
	var out []string
	for _, v := range r.elements(name, cty.String, "a list of texts") {
		out = append(out, r.literal(name, v))
	}
	return out
}

func (r reader) elements(name string, each cty.Type, want string) []cty.Value {
	v, ok := r.value(name)
	if !ok {
		return nil
	}
	if v.Type().IsPrimitiveType() {
		v = cty.TupleVal([]cty.Value{v})
	}
	list, err := convert.Convert(v, cty.List(each))
	if err != nil {
		r.fail(r.at(name), "Wrong type", "%s must be %s, not %s.", name, want, describe(v))
		return nil
	}
	return list.AsValueSlice()
}

// choice is a text out of a list.
func (r reader) choice(name, standard string, allowed ...string) string {
	if _, ok := r.value(name); !ok {
		return standard
	}
	given := r.str(name)
	r.oneOf(name, r.at(name), given, allowed)
	return given
}

func (r reader) oneOf(name string, at hcl.Range, given string, allowed []string) {
	if !slices.Contains(allowed, given) {
		r.fail(at, "Unknown "+name, "%q is none of %s.%s", given, strings.Join(allowed, ", "), eval.Suggest(given, allowed))
	}
}

// text is a text that may hold references to nodes that have files.
func (r reader) text(name string) Text {
	v, ok := r.as(name, cty.String, "a text")
	if !ok {
		return nil
	}
	return r.parts(name, v)
}

func (r reader) parts(name string, v cty.Value) Text {
	if v.IsNull() {
		r.fail(r.at(name), "Null value", "%s holds null where a text is expected.", name)
		return nil
	}
	text, ok := splitTokens(v.AsString())
	if !ok {
		r.fail(r.at(name), "Reference taken apart", "%s holds a part of a reference. Functions cannot look into references.", name)
		return nil
	}
	if a, found := text.pathless(); found {
		r.fail(r.at(name), "Reference without files", "%s holds %s, which has no files that a path could lead to. References in texts are to %s.",
			name, a, strings.Join(withPaths(), ", "))
		return nil
	}
	for _, a := range text.Refs() {
		r.l.use(r.owner, a, r.at(name))
	}
	return text
}

func (r reader) texts(name string) []Text {
	var out []Text
	for _, v := range r.elements(name, cty.String, "a list of texts") {
		out = append(out, r.parts(name, v))
	}
	return out
}

// textMap is a map of texts, as env; null removes an entry.
func (r reader) textMap(name string) map[string]Text {
	v, ok := r.as(name, cty.Map(cty.String), "a map of texts")
	if !ok {
		return nil
	}
	out := map[string]Text{}
	for key, v := range v.AsValueMap() {
		if !v.IsNull() {
			out[key] = r.parts(name, v)
		}
	}
	return out
}

// env is a map of environment variables.
func (r reader) env() map[string]Text {
	vars := r.textMap("env")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		r.envName("env", name)
	}
	return vars
}

func (r reader) secrets() []string {
	names := r.strs("secrets")
	for _, name := range names {
		r.envName("secrets", name)
	}
	return names
}

func (r reader) envName(attr, name string) {
	for i, c := range name {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			r.fail(r.at(attr), "Invalid name", "%q cannot be the name of an environment variable.", name)
			return
		}
	}
	if name == "" {
		r.fail(r.at(attr), "Invalid name", "The name of an environment variable cannot be empty.")
	}
}

// command is what a block runs: a text for the shell, or a list as argv.
func (r reader) command(name string) Command {
	v, ok := r.value(name)
	if !ok {
		return Command{}
	}
	c := Command{Range: r.at(name)}
	empty := v.CanIterateElements() && v.LengthInt() == 0
	if v.Type().IsPrimitiveType() {
		c.Shell = r.text(name)
		empty = v.Type() == cty.String && strings.TrimSpace(v.AsString()) == ""
	} else {
		c.Argv = r.texts(name)
	}
	if empty {
		r.fail(c.Range, "Empty command", "%s says nothing to run.", name)
	}
	return c
}

// ref is a reference to one node of the given kinds; the zero Address when there is none.
func (r reader) ref(name string, kinds ...string) Address {
	v, ok := r.value(name)
	if !ok {
		return Address{}
	}
	if v.Type().IsObjectType() && v.LengthInt() > 0 {
		if all := r.flatten(name, v, kinds); len(all) > 0 {
			r.fail(r.at(name), "Which instance?", "%s.%s has for_each, so %s must choose one of its instances: %s.%s[each.key].",
				all[0].Kind, all[0].Name, name, all[0].Kind, all[0].Name)
		}
		return Address{}
	}
	return r.address(name, v, kinds)
}

// refs are references to nodes of the given kinds; a block with for_each stands for all its instances.
func (r reader) refs(name string, kinds ...string) []Address {
	v, ok := r.value(name)
	if !ok {
		return nil
	}
	return r.flatten(name, v, kinds)
}

func (r reader) flatten(name string, v cty.Value, kinds []string) []Address {
	if v.IsNull() || v.Type() == cty.String || !v.CanIterateElements() {
		if a := r.address(name, v, kinds); a != (Address{}) {
			return []Address{a}
		}
		return nil
	}
	var all []Address
	seen := map[Address]bool{}
	for _, v := range v.Elements() {
		for _, a := range r.flatten(name, v, kinds) {
			if !seen[a] {
				seen[a] = true
				all = append(all, a)
			}
		}
	}
	return all
}

func (r reader) address(name string, v cty.Value, kinds []string) Address {
	want := "a reference such as " + kinds[0] + ".NAME"
	if len(kinds) > 1 {
		want = "a reference to one of " + strings.Join(kinds, ", ")
	}
	if v.IsNull() || v.Type() != cty.String {
		r.fail(r.at(name), "Not a reference", "%s must be %s, not %s.", name, want, describe(v))
		return Address{}
	}
	text, _ := splitTokens(v.AsString())
	a, ok := text.single()
	if !ok {
		r.fail(r.at(name), "Not a reference", "%s must be %s, not %s.", name, want, describe(v))
		return Address{}
	}
	if !slices.Contains(kinds, a.Kind) {
		r.fail(r.at(name), "Wrong kind of reference", "%s must be %s, not %s.", name, want, a)
		return Address{}
	}
	r.l.use(r.owner, a, r.at(name))
	return a
}

// data are the nodes laid into the working directory, sorted by name.
func (r reader) data() []Data {
	v, ok := r.value("data")
	if !ok {
		return nil
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		r.fail(r.at("data"), "Wrong type", "data must be a map from names to references, { \"name\" = fetch.x }, not %s.", describe(v))
		return nil
	}
	var out []Data
	all := v.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if clean, err := project.Clean(name); err != nil || clean == "." {
			r.fail(r.at("data"), "Invalid name", "%q is not a name inside the working directory.", name)
			continue
		}
		if a := r.address("data", all[name], withPaths()); a != (Address{}) {
			out = append(out, Data{Name: name, Ref: a})
		}
	}
	return out
}

// number is the value of a number attribute.
func (r reader) number(name string, standard float64) float64 {
	v, ok := r.as(name, cty.Number, "a number")
	if !ok {
		return standard
	}
	f, _ := v.AsBigFloat().Float64()
	return f
}

// whole is a whole number of at least low.
func (r reader) whole(name string, low, standard int64) int64 {
	v, ok := r.as(name, cty.Number, "a whole number")
	if !ok {
		return standard
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact {
		r.fail(r.at(name), "Not a whole number", "%s must be a whole number, not %s.", name, v.AsBigFloat().Text('g', 10))
		return standard
	}
	if n < low {
		r.fail(r.at(name), "Number too small", "%s must be at least %d, not %d.", name, low, n)
		return standard
	}
	return n
}

// fraction is a number that lies between two others, both excluded.
func (r reader) fraction(name string, high, standard float64) float64 {
	if _, ok := r.value(name); !ok {
		return standard
	}
	f := r.number(name, standard)
	if !(f > 0 && f < high) {
		r.fail(r.at(name), "Number out of range", "%s must lie between 0 and %g, not %g.", name, high, f)
	}
	return f
}

// duration is a text such as "40m", or a number of seconds.
func (r reader) duration(name string, standard time.Duration) time.Duration {
	v, ok := r.as(name, cty.String, "a duration such as \"40m\"")
	if !ok {
		return standard
	}
	given := r.literal(name, v)
	d, err := time.ParseDuration(given)
	if err != nil {
		if d, err = time.ParseDuration(given + "s"); err != nil {
			r.fail(r.at(name), "Not a duration", "%s must be a duration such as \"90s\", \"40m\" or \"1h30m\", not %q.", name, given)
			return standard
		}
	}
	if d <= 0 {
		r.fail(r.at(name), "Not a duration", "%s must be longer than nothing, not %q.", name, given)
	}
	return d
}

// memory is a text such as "64GiB" (binary) or "64GB" (decimal), or a number of bytes.
func (r reader) memory(name string) int64 {
	v, ok := r.as(name, cty.String, "a size such as \"64GiB\"")
	if !ok {
		return 0
	}
	given := r.literal(name, v)
	parse := units.FromHumanSize
	if strings.ContainsAny(given, "iI") {
		parse = units.RAMInBytes
	}
	n, err := parse(given)
	if err != nil || n <= 0 {
		r.fail(r.at(name), "Not a size", "%s must be a size such as \"64GiB\" or \"64GB\", not %q.", name, given)
		return 0
	}
	return n
}

// limits are what a node may use.
func (r reader) limits() Limits {
	return Limits{CPUs: int(r.whole("cpus", 1, 0)), Memory: r.memory("memory"), Timeout: r.duration("timeout", 0)}
}

// pattern is an RE2 regular expression with at least the given number of groups.
func (r reader) pattern(name string, groups int) string {
	given := r.str(name)
	re, err := regexp.Compile(given)
	if err != nil {
		r.fail(r.at(name), "Invalid regular expression", "%s: %s.", name, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	} else if re.NumSubexp() < groups && given != "" {
		r.fail(r.at(name), "No group", "%s needs a group, as in \"rate: ([0-9.]+)\": what the first group matches is the value.", name)
	}
	return given
}

// globs are doublestar patterns.
func (r reader) globs(name string, standard ...string) []string {
	if _, ok := r.value(name); !ok {
		return standard
	}
	patterns := r.strs(name)
	for i, p := range patterns {
		if err := project.CheckPattern(strings.TrimPrefix(p, "!")); err != nil {
			r.fail(r.atItem(name, i), "Invalid pattern", "%s: %s.", name, err)
		}
	}
	return patterns
}

// inside is a path that stays below the directory that it is relative to.
func (r reader) inside(name, standard string) string {
	if _, ok := r.value(name); !ok {
		return standard
	}
	clean, err := project.Clean(r.str(name))
	if err != nil {
		r.fail(r.at(name), "Path outside the project", "%s: %s.", name, err)
	}
	return clean
}
