package hclspec

import (
	"math/big"
	"os"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/format"
	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/placeholder"
)

func benchmarkSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "benchmark", Label: true,
		Key: []string{
			"image", "data", "env", "command", "client", "fixes", "mounts", "caches", "fill", "cpus", "memory",
			"quiet", "network", "sandbox",
		},
		// The executor is no part of keys: they contain the class of the machine.
		Free: []string{"for_each", "secrets", "disk", "timeout", "estimate", "executor"},
		Blocks: []*eval.Schema{
			{Kind: "gpus", Key: []string{"count", "memory", "model", "sm_clock"}},
			{Kind: "server", Key: []string{"command", "env", "shm_size", "ulimits", "devices", "capabilities"},
				Free: []string{"ipc"}, Blocks: []*eval.Schema{
					{Kind: "ready", Key: []string{"http", "log", "tcp"}, Free: []string{"timeout"}},
				}},
			// The canary heats the devices, so its command is part of a block. The limit of its deviation is not.
			{Kind: "canary", Key: []string{"command"}, Free: []string{"match", "json", "file", "unit", "tolerance",
				"timeout"}},
			{Kind: "check", Key: []string{"command", "source", "same"}, Free: []string{"timeout"}},
			// The number of blocks does not change any single block.
			{Kind: "design", Key: []string{"pairing", "warmup", "repeat", "seed"},
				Free: []string{"samples", "max", "looks", "burn_in", "spread"}},
			// To read the output again takes no new measurement.
			{Kind: "metrics", Free: []string{"format", "primary", "file", "token_tolerance", "require"},
				Blocks: []*eval.Schema{
					{Kind: "metric", Label: true, Many: true, Free: []string{"match", "json", "file", "unit", "better",
						"tie"}},
				}},
		},
	}
}

func decodeBenchmark(r reader, b Block) {
	r.Need("command", "the command that prints the numbers")
	bench := Benchmark{
		Block: b, Work: r.work(r.filledIn("command")), Data: r.data(), Client: r.client("client", b),
		Quiet: r.Bool("quiet"), GPUs: r.gpus(), Server: r.server(), Canary: r.canary(), Check: r.check(b),
		Design: r.design(), Metrics: r.metrics(),
	}
	bench.Executor, bench.ExecutorRange = r.executor(), r.At("executor")
	r.caches(&bench)
	if bench.Image != (Address{}) && len(bench.Fixes) > 0 {
		r.Fail(r.At("fixes"), "Fix outside the image",
			"%s runs in %s, and a fix changes what is installed there: list it in the fixes of that image.", r.Title(),
			bench.Image)
	}
	if bench.Server != nil {
		r.arguments(bench.Server.Command, bench.Secrets)
	}
	if bench.Canary != nil {
		r.arguments(bench.Canary.Command, bench.Secrets)
	}
	if bench.Check != nil {
		r.arguments(bench.Check.Command, bench.Secrets)
	}
	r.l.spec.Benchmarks = append(r.l.spec.Benchmarks, bench)
}

// client returns the source whose tree commands run in: a reference, or a revision of the commit's repo.
func (r reader) client(name string, b Block) Address {
	v, ok := r.Value(name)
	if !ok {
		return Address{}
	}
	if v.Type() == cty.String {
		if text, _ := splitTokens(v.AsString()); len(text.Refs()) > 0 {
			return r.ref(name, "source")
		}
	}
	rev, ok := r.revision(name, "")
	if !ok {
		return Address{}
	}
	repo := r.l.onlyRepo()
	if i, ok := r.l.candidates().byKey[b.Candidate]; ok {
		repo = Address{Kind: "repo", Name: r.l.spec.Candidates[i].Source.Name}
		if repo.Name == "" {
			repo = Address{}
		}
	}
	if repo == (Address{}) {
		if !r.l.shadow {
			r.Fail(r.At(name), "Client without a repo",
				"%s is a revision of the commit's repo, and there is none here. Declare a repo block.", name)
		}
		return Address{}
	}
	a := r.l.clientSource(repo, rev, r.Instance, r.At(name))
	r.l.use(r.owner, a, r.At(name))
	return a
}

// gpus decodes the gpus block. A count of 0 means the same as no block; the other attributes are still checked.
func (r reader) gpus() *GPUs {
	b := r.Block.Block("gpus")
	if b == nil {
		return nil
	}
	r = r.nested(b)
	g := &GPUs{Count: int(r.Whole("count", 0, 1)), Memory: r.Size("memory"), Model: r.Pattern("model", 0),
		SMClock: r.Frequency("sm_clock")}
	if r.Has("sm_clock") {
		g.SMClockRange = r.At("sm_clock")
	}
	if g.Count == 0 {
		return nil
	}
	return g
}

func (r reader) server() *Server {
	b := r.Block.Block("server")
	if b == nil {
		return nil
	}
	r = r.nested(b)
	r.Need("command", "the command that starts the server")
	s := &Server{Command: r.filledIn("command"), Env: r.env(), Timeout: 10 * time.Minute, ShmSize: r.Size("shm_size"),
		Ulimits: r.ulimits()}
	s.Devices, s.Capabilities = r.devices(), r.capabilities()
	if ipc := r.Str("ipc"); ipc != "" && ipc != "private" {
		r.Fail(r.At("ipc"), "Shared memory of others",
			"ipc must be \"private\", not %q: in another IPC namespace, a candidate could reach the memory of other "+
				"programs.", ipc)
	}
	ready := b.Block("ready")
	if ready == nil && b.Meant("ready") {
		return s
	}
	if ready == nil {
		r.Fail(b.Range, "When is the server ready?",
			"A server block needs ready { http = \"/health\" }, ready { log = \"regexp\" } or ready { tcp = true }.")
		return s
	}
	r = r.nested(ready)
	s.HTTP, s.Log, s.TCP, s.Timeout = r.Str("http"), r.Pattern("log", 0), r.Bool("tcp"),
		r.Duration("timeout", s.Timeout)
	given := 0
	for _, name := range []string{"http", "log", "tcp"} {
		if _, ok := r.Value(name); ok && (name != "tcp" || s.TCP) || r.Has(name) && !ok {
			given++
		}
	}
	if given != 1 && !ready.Misspelt() {
		r.Fail(ready.Range, "When is the server ready?",
			"A ready block needs exactly one of http = \"/path\", log = \"regexp\" and tcp = true.")
	}
	if s.HTTP != "" && s.HTTP[0] != '/' {
		r.Fail(r.At("http"), "Invalid path",
			"http must be a path on the server's port that begins with a slash, not %q.", s.HTTP)
	}
	return s
}

func (r reader) canary() *Canary {
	b := r.Block.Block("canary")
	if b == nil {
		return nil
	}
	r = r.nested(b)
	r.Need("command", "a small workload whose speed does not depend on the candidates")
	return &Canary{
		Command: r.filledIn("command"), Metric: r.reading("canary"), Tolerance: r.Fraction("tolerance", 0, 1, 0.05),
		Timeout: r.Duration("timeout", 10*time.Minute), Range: b.Range,
	}
}

// standardDesign returns the design of a benchmark without a design block: as few blocks as a verdict needs, and at
// most standardMax.
func standardDesign() Design {
	return Design{Samples: fewestBlocks, Max: standardMax, Repeat: 1, Pairing: "blocked"}
}

const (
	fewestBlocks = 4  // fewer blocks give no verdict
	standardMax  = 15 // blocks at most
	maxLooks     = 20 // more looks only cost power
	maxBurnIn    = 100
	maxRepeat    = 100
)

func (r reader) design() Design {
	d := standardDesign()
	b := r.Block.Block("design")
	if b == nil {
		return d
	}
	r = r.nested(b)
	v, ok := r.As("samples", cty.Number, "a whole number")
	if ok && v.AsBigFloat().Cmp(big.NewFloat(1)) < 0 {
		r.Fail(r.At("samples"), "Benchmark without samples",
			"samples must be at least 1; 4 is the fewest that a verdict can rest on.")
	} else {
		d.Samples = r.blocks("samples", fewestBlocks)
	}
	if r.Has("samples") && (d.Samples < fewestBlocks || d.Samples > standardMax) {
		d.Max = d.Samples
	}
	d.Max = r.blocks("max", d.Max)
	sound := !r.Has("samples") || ok && v.AsBigFloat().Cmp(big.NewFloat(float64(d.Samples))) == 0
	if d.Max < d.Samples && sound {
		r.Fail(r.At("max"), "Cap below the start",
			"max is %d, and samples is %d: measuring begins with samples and ends at max.", d.Max, d.Samples)
	}
	r.looks(&d)
	d.BurnIn = r.burnIn()
	d.Spread = r.Bool("spread")
	d.Pairing = r.Choice("pairing", "blocked", "blocked", "independent")
	d.Warmup = int(r.Whole("warmup", 0, 0))
	d.Repeat = r.repeat()
	d.Seed = r.Whole("seed", 0, 0)
	return d
}

// burnIn reads the number of blocks before those that are judged.
func (r reader) burnIn() int {
	n := r.Whole("burn_in", 0, 0)
	if n > maxBurnIn {
		r.Fail(r.At("burn_in"), "Too many blocks for burn-in",
			"burn_in is %d; at most %d blocks can be measured without being judged.", n, maxBurnIn)
		return 0
	}
	return int(n)
}

// repeat reads the number of runs of the command for one sample.
func (r reader) repeat() int {
	n := r.Whole("repeat", 1, 1)
	if n > maxRepeat {
		r.Fail(r.At("repeat"), "Too many passes",
			"repeat is %d; at most %d passes can make one sample. Further blocks show more than further passes.", n,
			maxRepeat)
		return 1
	}
	return int(n)
}

// looks reads the numbers of blocks at which contrasts are judged. The first is samples, and the last is max.
func (r reader) looks(d *Design) {
	values := r.Elements("looks", cty.Number, "a list of whole numbers such as [4, 6, 9, 12, 15]")
	var looks []int
	for _, v := range values {
		if !v.IsKnown() {
			return
		}
		n, accuracy := int64(0), big.Below
		if !v.IsNull() {
			n, accuracy = v.AsBigFloat().Int64()
		}
		switch {
		case accuracy != big.Exact || n < fewestBlocks || n > maxBlocks:
			r.Fail(r.At("looks"), "Impossible look",
				"looks must hold whole numbers of blocks from %d, the fewest that a verdict can rest on, to %d.",
				fewestBlocks, maxBlocks)
			return
		case len(looks) > 0 && int(n) <= looks[len(looks)-1]:
			r.Fail(r.At("looks"), "Looks out of order", "looks must ascend: %d stands after %d.", n,
				looks[len(looks)-1])
			return
		}
		looks = append(looks, int(n))
	}
	if len(looks) == 0 {
		if v, ok := r.Value("looks"); ok && v.CanIterateElements() && v.LengthInt() == 0 {
			r.Fail(r.At("looks"), "No look",
				"looks must name at least one number of blocks. Leave it out for 4, 6, 9, 12 and 15.")
		}
		return
	}
	if len(looks) > maxLooks {
		r.Fail(r.At("looks"), "Too many looks",
			"looks holds %d numbers; at most %d are possible, and 5 save nearly as much.", len(looks), maxLooks)
		return
	}
	first, last := looks[0], looks[len(looks)-1]
	if r.Has("samples") && d.Samples != first {
		r.Fail(r.At("samples"), "Two numbers for the first look",
			"samples is %d, and the first of looks is %d. Leave samples out.", d.Samples, first)
	}
	if r.Has("max") && d.Max != last {
		r.Fail(r.At("max"), "Two numbers for the last look", "max is %d, and the last of looks is %d. Leave max out.",
			d.Max, last)
	}
	d.Samples, d.Max, d.Looks = first, last, looks
}

// maxBlocks is far above the number that a verdict can use: each block is a node of the graph.
const maxBlocks = 10_000

// blocks reads a number of blocks.
func (r reader) blocks(name string, standard int) int {
	n := r.Whole(name, 1, int64(standard))
	if n > maxBlocks {
		r.Fail(r.At(name), "Number too large", "%s must be at most %d, not %d.", name, maxBlocks, n)
		return standard
	}
	return int(n)
}

func (r reader) metrics() Metrics {
	b := r.Block.Block("metrics")
	if b == nil {
		if r.Block.Meant("metrics") {
			return Metrics{}
		}
		r.Fail(r.Block.Range, "Missing metrics", "%s needs metrics { primary = \"NAME\" }: the number that decides.",
			r.Title())
		return Metrics{}
	}
	r = r.nested(b)
	m := Metrics{
		Format:  r.Choice("format", "auto", format.Names()...),
		Primary: r.Str("primary"), File: r.Inside("file", ""), TokenTolerance: r.Fraction("token_tolerance", 0, 1, 0)}
	var names []string
	for _, custom := range b.Blocks("metric") {
		if slices.Contains(names, custom.Name) {
			r.Fail(custom.Label, "Duplicate metric", "There is a metric %q in this block already.", custom.Name)
			continue
		}
		names = append(names, custom.Name)
		own := r.nested(custom)
		metric := own.reading(custom.Name)
		metric.Better, metric.Tie = own.Choice("better", "", "higher", "lower"), own.Fraction("tie", 0, 0.5, 0)
		m.Custom = append(m.Custom, metric)
	}
	if !r.Has("primary") && len(names) == 1 {
		m.Primary = names[0]
	} else {
		r.Need("primary", "the name of the metric that decides")
	}
	m.Require = r.required(names, m.Own())
	if len(names) > 0 && m.Own() && m.Primary != "" && !slices.Contains(names, m.Primary) {
		r.Fail(r.At("primary"), "Unknown metric", "No metric block declares %q.%s", m.Primary,
			diag.Choices(m.Primary, names))
	}
	r.gives(m, names)
	return m
}

// Own reports whether the metric blocks, if there are any, are the only metrics that are read.
func (m Metrics) Own() bool { return slices.Contains([]string{"", "auto", "json", "regex"}, m.Format) }

// reading reads the place of a number in the output of a command.
func (r reader) reading(name string) Metric {
	m := Metric{Name: name, Match: r.Pattern("match", 1), JSON: r.Path("json"), File: r.Inside("file", ""),
		Unit: r.Str("unit")}
	if r.Has("match") == r.Has("json") && !r.Block.Misspelt() {
		r.Fail(r.Block.Range, "How is the metric read?",
			"%s needs exactly one of match = \"regexp with a group\" and json = \"path.to.value\".", r.Title())
	}
	return m
}

// arguments refuses a list of arguments that names a secret: every user of the machine can read them.
func (r reader) arguments(c Command, secrets []string) {
	for _, word := range c.Argv {
		for _, part := range word {
			os.Expand(part.Literal, func(name string) string {
				if slices.Contains(secrets, name) {
					r.Fail(c.Range, "Secret among the arguments",
						"$%s is a secret, and every user of a machine can read the arguments of its processes. Let "+
							"the program read it from its environment.", name)
				}
				return ""
			})
		}
	}
}

// filledIn reads a command and refuses one with a placeholder: it would fail, or measure something else, after
// everything that it needs was built.
func (r reader) filledIn(name string) Command {
	c := r.command(name)
	var words []string
	if c.Argv != nil {
		for _, arg := range c.Argv {
			words = append(words, arg.Expand(func(Address) string { return "$" }))
		}
	} else {
		words = placeholder.Words(c.Shell.Expand(func(Address) string { return "$" }))
	}
	if word := placeholder.Find(words); word != "" {
		r.Fail(c.Range, "Placeholder in a command",
			"%q stands for a value that is not filled in. Write the value, for instance "+
				"${each.commit.params.model}; a shell variable is written $NAME.", word)
	}
	return c
}
