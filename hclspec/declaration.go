package hclspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/hclspec/internal/variable"
)

// maxInstances bounds the instances that the for_each of all blocks make together, and the number of candidates.
const maxInstances = 250_000

// kind is one kind of block: a row in the table of kinds.
type kind struct {
	schema *eval.Schema
	decode func(r reader, b Block) // one instance; nil: decoded by other code
	out    func(s *Spec, b Block)  // adds an instance of a row that is out; nil: every instance is decoded
}

// kinds is the table of kinds. Nodes of a kind are decoded in this order.
func kinds() []kind {
	return []kind{
		{schema: repoSchema(), decode: decodeRepo},
		{schema: commitSchema()},
		{schema: variantSchema()},
		{schema: mountSchema(), decode: decodeMount, out: func(s *Spec, b Block) {
			s.Mounts = append(s.Mounts, Mount{Block: b})
		}},
		{schema: cacheSchema(), decode: decodeCache},
		{schema: fetchSchema(), decode: decodeFetch, out: func(s *Spec, b Block) {
			s.Fetches = append(s.Fetches, Fetch{Block: b})
		}},
		{schema: wheelSchema(), decode: decodeWheel, out: func(s *Spec, b Block) {
			s.Wheels = append(s.Wheels, Wheel{Block: b})
		}},
		{schema: imageSchema(), decode: decodeImage, out: func(s *Spec, b Block) {
			s.Images = append(s.Images, Image{Block: b})
		}},
		{schema: fixSchema()},
		{schema: failureSchema(), decode: decodeFailure},
		{schema: skipSchema(), decode: decodeSkip, out: func(*Spec, Block) {}},
		{schema: knownIssueSchema(), decode: decodeKnownIssue, out: func(*Spec, Block) {}},
		{schema: benchmarkSchema(), decode: decodeBenchmark, out: func(s *Spec, b Block) {
			s.Benchmarks = append(s.Benchmarks, Benchmark{Block: b})
		}},
		{schema: compareSchema(), decode: decodeCompare},
		{schema: reportSchema(), decode: decodeReport},
		{schema: taskSchema(), decode: decodeTask, out: func(s *Spec, b Block) {
			s.Tasks = append(s.Tasks, Task{Block: b})
		}},
		{schema: executorSchema(), decode: decodeExecutor},
		{schema: machineSchema(), decode: decodeMachine},
		{schema: modelSchema(), decode: decodeModel},
	}
}

// declaration is one block that declares nodes.
type declaration struct {
	*eval.Block
	address   Address
	instances []instance // after instancesOf
	known     bool       // instances is known; false: for_each has a mistake
	listed    bool
	reference cty.Value // value of kind.name, after referenceTo
}

// instance is one key of for_each, with its value.
type instance struct {
	key   string
	value cty.Value
}

// declare gives every block its name, so that references can be looked up.
func (l *loader) declare() {
	for _, b := range l.blocks {
		if _, ok := l.kinds[b.Schema.Kind]; !ok {
			continue
		}
		d := &declaration{Block: b, address: Address{Kind: b.Schema.Kind, Name: b.Name}}
		if first, ok := l.byName[d.address]; ok {
			l.scope.Diags.Error("", b.Label, "Duplicate "+b.Schema.Kind,
				fmt.Sprintf("%s is declared already at %s.", d.address, first.Range))
			continue
		}
		// Only strings name commits, variants and models, so their names need not be identifiers.
		if named := b.Schema.Kind == "commit" || b.Schema.Kind == "variant" || b.Schema.Kind == "model"; !named &&
			!hclsyntax.ValidIdentifier(b.Name) {
			l.scope.Diags.Error("", b.Label, "Invalid name", fmt.Sprintf("%s %q: a name has letters, "+
				"digits, _ and -, and begins with a letter.", b.Schema.Kind, b.Name))
			continue
		}
		l.byName[d.address] = d
		l.decls[d.address.Kind] = append(l.decls[d.address.Kind], d)
	}
	l.spec.Declared = slices.SortedFunc(maps.Keys(l.byName), Address.Compare)
	l.defineRoots()
	variable.DefineLocals(l.scope, l.blocksOf("locals"))
	variable.Define(l.scope, l.blocksOf("variable"), l.given())
}

// of returns the declarations of a kind, in the order of the files.
func (l *loader) of(kind string) []*declaration { return l.decls[kind] }

// namesOf returns a function that lists the names of a kind, in the order of the files.
func (l *loader) namesOf(kind string) func() []string {
	return func() (all []string) {
		for _, d := range l.of(kind) {
			all = append(all, d.Name)
		}
		return all
	}
}

// defineRoots makes kind.name of every kind a reference, and adds commit, variant, candidates and source.
func (l *loader) defineRoots() {
	for name := range l.kinds {
		get := func(second string) (cty.Value, bool) {
			d, ok := l.byName[Address{Kind: name, Name: second}]
			if !ok {
				return cty.NilVal, false
			}
			return l.referenceTo(d), true
		}
		l.scope.Roots[name] = eval.Root{What: name, Names: l.namesOf(name), Get: get, All: func() cty.Value {
			all := map[string]cty.Value{}
			for _, d := range l.of(name) {
				all[d.Name] = l.referenceTo(d)
			}
			return cty.ObjectVal(all)
		}}
	}
	l.scope.Roots["commit"] = eval.Root{What: "commit", All: func() cty.Value { return l.allCommits().value }}
	l.scope.Roots["variant"] = eval.Root{What: "variant", All: func() cty.Value { return l.variants().value }}
	l.scope.Roots["candidates"] = eval.Root{What: "candidate", All: func() cty.Value { return l.candidates().value }}
	l.scope.Roots["executor"] = eval.Root{
		What: "executor", Names: l.executorNames, Get: l.executorsOf, All: l.allExecutors}
	l.scope.Roots["source"] = eval.Root{
		What: "source", Names: l.namesOf("repo"), Get: l.sourcesOf,
		All: func() cty.Value {
			all := map[string]cty.Value{}
			for _, d := range l.of("repo") {
				all[d.Name], _ = l.sourcesOf(d.Name)
			}
			return cty.ObjectVal(all)
		},
	}
}

// referenceTo returns the value of kind.name: a reference, or with for_each an object of references by key.
func (l *loader) referenceTo(d *declaration) cty.Value {
	if d.reference != cty.NilVal {
		return d.reference
	}
	if d.Attrs["for_each"] == nil {
		d.reference = token(d.address)
		return d.reference
	}
	instances, known := l.instancesOf(d)
	if !d.listed {
		return cty.DynamicVal // in a cycle, which was reported
	}
	d.reference = cty.DynamicVal
	if known {
		all := make(map[string]cty.Value, len(instances))
		for _, i := range instances {
			all[i.key] = token(Address{Kind: d.address.Kind, Name: d.address.Name, Key: i.key, Keyed: true})
		}
		d.reference = cty.ObjectVal(all)
	}
	return d.reference
}

// instancesOf evaluates for_each once. Without for_each there is one instance, without a key.
func (l *loader) instancesOf(d *declaration) ([]instance, bool) {
	if d.listed {
		return d.instances, d.known
	}
	attr := d.Attrs["for_each"]
	if attr == nil {
		d.instances, d.known, d.listed = []instance{{}}, true, true
		return d.instances, true
	}
	leave, ok := l.scope.Enter(d.address.String(), attr.NameRange)
	if !ok {
		return nil, false
	}
	defer leave()
	d.instances, d.known = l.expand(l.keys(attr), attr)
	d.listed = true
	return d.instances, d.known
}

// keys returns the value of for_each. For toset(LIST) it returns the list without duplicates: cty takes longer to make
// and sort a set than all other work on its elements takes.
func (l *loader) keys(attr *hcl.Attribute) cty.Value {
	call, ok := hcl.UnwrapExpressionUntil(attr.Expr, func(e hcl.Expression) bool {
		_, call := e.(*hclsyntax.FunctionCallExpr)
		return call
	}).(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "toset" || len(call.Args) != 1 || call.ExpandFinal {
		return l.scope.Static(attr.Expr)
	}
	v := l.scope.Static(call.Args[0])
	if ty := v.Type(); !v.IsWhollyKnown() || v.IsNull() || !ty.IsTupleType() && !ty.IsListType() || v.LengthInt() == 0 {
		return l.scope.Static(attr.Expr)
	}
	distinct, seen := make([]cty.Value, 0, v.LengthInt()), make(map[string]bool, v.LengthInt())
	for _, key := range v.Elements() {
		if key.IsNull() || key.Type() != cty.String {
			return l.scope.Static(attr.Expr)
		}
		if text := key.AsString(); !seen[text] {
			seen[text] = true
			distinct = append(distinct, key)
		}
	}
	return cty.ListVal(distinct)
}

// expand returns the instances of a for_each value, sorted by key.
func (l *loader) expand(v cty.Value, attr *hcl.Attribute) ([]instance, bool) {
	fail := func(detail string, args ...any) ([]instance, bool) {
		l.scope.Diags.Error("", attr.Expr.Range(), "Invalid for_each", fmt.Sprintf(detail, args...))
		return nil, false
	}
	ty := v.Type()
	switch {
	case !v.IsKnown():
		return nil, false
	case v.IsNull():
		return fail("The value is null. An empty map, {}, makes no instance.")
	case !v.CanIterateElements():
		return fail("for_each takes a map, an object, a set of texts or a list of distinct texts, not %s.",
			eval.Describe(v))
	case v.LengthInt() > maxInstances-l.instances:
		return fail("There are %d keys, and with the keys of other blocks more than %d instances, which is the "+
			"limit of a project. Divide it into several projects, or let one command go over several keys.",
			v.LengthInt(), maxInstances)
	}
	l.instances += v.LengthInt()
	keyed := ty.IsMapType() || ty.IsObjectType()
	instances, seen := make([]instance, 0, v.LengthInt()), make(map[string]bool, v.LengthInt())
	for key, value := range v.Elements() {
		if !keyed {
			key = value
		}
		if !key.IsKnown() {
			return nil, false
		}
		if key.IsNull() {
			return fail("One of the keys is null. Leave such elements out: [for x in list : x if x != null].")
		}
		if key.Type() != cty.String {
			return fail("A list or set must hold texts, which become the keys, not %s. To go over objects, make a "+
				"map: { for x in list : x.name => x }.", eval.Describe(key))
		}
		text := key.AsString()
		if text == "" || strings.Contains(text, funcs.Mark) || strings.ContainsAny(text, "\n\r") {
			return fail("%q cannot be a key: a key is a text in one line that is not empty, and no reference.",
				strings.ReplaceAll(text, funcs.Mark, ""))
		}
		if seen[text] {
			return fail("The key %q is there twice.", text)
		}
		seen[text] = true
		instances = append(instances, instance{text, value})
	}
	slices.SortFunc(instances, func(a, b instance) int { return strings.Compare(a.key, b.key) })
	return instances, true
}

// eachNames returns the attributes that each may have in a block that goes over candidates.
func eachNames() eval.Each {
	each := variantEach()
	for _, name := range []string{"value", "rev", "patch", "source"} {
		each[name] = nil
	}
	return each
}

// each returns the value of each for an instance. If the key names a candidate or a commit, it has their attributes. If
// keyOnly is set, it is the key.
func (l *loader) each(i instance, keyOnly bool) cty.Value {
	set, key := l.candidates(), cty.StringVal(i.key)
	if keyOnly && set.value.IsKnown() {
		return key
	}
	attrs := map[string]cty.Value{"key": key, "value": i.value}
	if c, ok := set.byKey[i.key]; ok {
		for _, name := range []string{"commit", "variant", "rev", "patch", "source"} {
			attrs[name] = set.values[c].GetAttr(name)
		}
	} else if c, ok := l.allCommits().byName[i.key]; ok {
		attrs["commit"] = c
	} else if !set.value.IsKnown() {
		return cty.DynamicVal
	}
	return cty.ObjectVal(attrs)
}

// decode turns all declarations into the Spec.
func (l *loader) decode() {
	l.allCommits()
	l.candidates()
	l.exclude()
	for _, k := range kinds() {
		for i, d := range l.of(k.schema.Kind) {
			if k.decode != nil && !excluding(d.address.Kind) {
				l.decodeAll(k, d, len(l.of(k.schema.Kind))-i)
			}
		}
		if k.schema.Kind == "fix" {
			l.decodeFixes()
		}
	}
	l.evaluateFixes()
	l.decodeCost()
	l.scope.Roots["local"].All() // mistakes in unused values count, too
	l.settle()
	l.complete()
	l.check()
}

// decodeAll decodes every instance of a block. A block without instances is decoded once with unknown values, to find
// the mistakes in it. left is the number of blocks of its kind from this one on.
func (l *loader) decodeAll(k kind, d *declaration, left int) {
	instances, _ := l.instancesOf(d)
	if d.address.Kind == "task" { // there may be many, and a list that grows moves them
		l.spec.Tasks = slices.Grow(l.spec.Tasks, min(len(instances)*left, 1<<14))
	}
	keyed := d.Attrs["for_each"] != nil
	var names eval.Each
	if keyed {
		names = eachNames()
	}
	block := l.scope.Reader(d.Block, d.Expressions("for_each"), names)
	decode := func(i instance, r eval.Reader) {
		b := Block{Address: d.address, Range: d.Range}
		if keyed {
			b.Address.Key, b.Address.Keyed = i.key, true
			if _, ok := l.candidates().byKey[i.key]; ok {
				b.Candidate = i.key
			}
		}
		l.decodeInstance(k, reader{Reader: r, l: l, owner: b.Address}, b)
	}
	if len(instances) == 0 {
		real := l.spec
		l.spec, l.shadow = &Spec{}, true
		decode(instance{}, block.With("", cty.DynamicVal))
		l.spec, l.shadow = real, false
		return
	}
	for some := range slices.Chunk(l.withFaulty(d, instances), 1<<10) {
		each := func(i int) (string, cty.Value) { return some[i].key, l.each(some[i], block.KeyOnly) }
		for i, r := range block.Instances(len(some), each) {
			decode(some[i], r)
		}
	}
}
