package hclspec

import (
	"math/big"
	"regexp"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func benchmarkSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "benchmark", Label: true,
		Key:  []string{"image", "data", "env", "command", "client", "fixes", "cpus", "memory", "quiet", "network"},
		Free: []string{"for_each", "secrets", "timeout"},
		Blocks: []*eval.Schema{
			{Kind: "gpus", Key: []string{"count", "memory", "model"}},
			{Kind: "server", Key: []string{"command", "env"}, Blocks: []*eval.Schema{
				{Kind: "ready", Key: []string{"http", "log", "tcp"}, Free: []string{"timeout"}},
			}},
			// How many blocks are measured is not part of what one of them is.
			{Kind: "design", Key: []string{"pairing", "warmup", "seed"}, Free: []string{"samples", "max"}},
			// Reading the output anew takes no new measurement.
			{Kind: "metrics", Free: []string{"format", "primary", "file", "token_tolerance"}, Blocks: []*eval.Schema{
				{Kind: "metric", Label: true, Many: true, Free: []string{"match", "json", "file", "unit", "better", "tie"}},
			}},
		},
	}
}

func decodeBenchmark(r reader, b Block) {
	r.need("command", "what is run and prints the numbers")
	bench := Benchmark{
		Block: b, Image: r.ref("image", "image"), Data: r.data(), Env: r.env(), Secrets: r.secrets(), Command: r.command("command"),
		Client: r.client(b), Fixes: r.refs("fixes", "fix"), Quiet: r.boolean("quiet"), Network: r.boolean("network"), Limits: r.limits(),
		GPUs: r.gpus(), Server: r.server(), Design: r.design(), Metrics: r.metrics(),
	}
	r.placeholders(bench.Command)
	r.l.spec.Benchmarks = append(r.l.spec.Benchmarks, bench)
}

// client is the source whose tree the commands run in: a reference to one, or a revision of the commit's repo.
func (r reader) client(b Block) Address {
	v, ok := r.value("client")
	if !ok {
		return Address{}
	}
	if v.Type() == cty.String {
		if text, _ := splitTokens(v.AsString()); len(text.Refs()) > 0 {
			return r.ref("client", "source")
		}
	}
	rev, ok := r.revision("client", "")
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
			r.fail(r.at("client"), "Client without a repo", "client is a revision of the commit's repo, and there is none here. Declare a repo block.")
		}
		return Address{}
	}
	a := r.l.clientSource(repo, rev, r.at("client"))
	r.l.use(r.owner, a, r.at("client"))
	return a
}

func (r reader) gpus() *GPUs {
	b := r.block.Block("gpus")
	if b == nil {
		return nil
	}
	r = r.nested(b)
	return &GPUs{Count: int(r.whole("count", 1, 1)), Memory: r.memory("memory"), Model: r.pattern("model", 0)}
}

func (r reader) server() *Server {
	b := r.block.Block("server")
	if b == nil {
		return nil
	}
	r = r.nested(b)
	r.need("command", "what starts the server")
	s := &Server{Command: r.command("command"), Env: r.env(), Timeout: 10 * time.Minute}
	r.placeholders(s.Command)
	ready := b.Block("ready")
	if ready == nil {
		r.fail(b.Range, "When is the server ready?", "A server block needs ready { http = \"/health\" }, ready { log = \"regexp\" } or ready { tcp = true }.")
		return s
	}
	r = r.nested(ready)
	s.HTTP, s.Log, s.TCP, s.Timeout = r.str("http"), r.pattern("log", 0), r.boolean("tcp"), r.duration("timeout", s.Timeout)
	given := 0
	for _, name := range []string{"http", "log", "tcp"} {
		if _, ok := r.value(name); ok && (name != "tcp" || s.TCP) || r.has(name) && !ok {
			given++
		}
	}
	if given != 1 {
		r.fail(ready.Range, "When is the server ready?", "A ready block needs exactly one of http = \"/path\", log = \"regexp\" and tcp = true.")
	}
	if s.HTTP != "" && s.HTTP[0] != '/' {
		r.fail(r.at("http"), "Invalid path", "http must be a path on the server's port that begins with a slash, not %q.", s.HTTP)
	}
	return s
}

func (r reader) design() Design {
	d := Design{Samples: 7, Max: 7, Pairing: "blocked"}
	b := r.block.Block("design")
	if b == nil {
		return d
	}
	r = r.nested(b)
	if v, ok := r.as("samples", cty.Number, "a whole number"); ok && v.AsBigFloat().Cmp(big.NewFloat(1)) < 0 {
		r.fail(r.at("samples"), "Benchmark without samples", "samples must be at least 1; 7 is the fewest that a verdict can rest on.")
	} else {
		d.Samples = int(r.whole("samples", 1, 7))
	}
	d.Max = int(r.whole("max", 1, int64(d.Samples)))
	if d.Max < d.Samples {
		r.fail(r.at("max"), "Cap below the start", "max is %d, and samples is %d: measuring begins with samples and ends at max.", d.Max, d.Samples)
	}
	d.Pairing = r.choice("pairing", "blocked", "blocked", "independent")
	d.Warmup = int(r.whole("warmup", 0, 0))
	d.Seed = r.whole("seed", 0, 0)
	return d
}

func (r reader) metrics() Metrics {
	b := r.block.Block("metrics")
	if b == nil {
		r.fail(r.block.Range, "Missing metrics", "%s needs metrics { primary = \"NAME\" }: the number that decides.", r.title())
		return Metrics{}
	}
	r = r.nested(b)
	m := Metrics{
		Format:  r.choice("format", "auto", "auto", "vllm", "sglang", "gobench", "redis", "json", "regex"),
		Primary: r.str("primary"), File: r.inside("file", ""), TokenTolerance: r.fraction("token_tolerance", 1, 0), Range: b.Range,
	}
	var names []string
	for _, custom := range b.Blocks("metric") {
		if slices.Contains(names, custom.Name) {
			r.fail(custom.Label, "Duplicate metric", "There is a metric %q in this block already.", custom.Name)
			continue
		}
		names = append(names, custom.Name)
		m.Custom = append(m.Custom, r.nested(custom).metric())
	}
	if !r.has("primary") && len(names) == 1 {
		m.Primary = names[0]
	} else {
		r.need("primary", "the name of the metric that decides")
	}
	own := m.Format == "regex" || m.Format == "json" || m.Format == "auto"
	if len(names) > 0 && own && m.Primary != "" && !slices.Contains(names, m.Primary) {
		r.fail(r.at("primary"), "Unknown metric", "No metric block declares %q.%s", m.Primary, eval.Choices(m.Primary, names))
	}
	return m
}

func (r reader) metric() Metric {
	m := Metric{
		Name: r.block.Name, Match: r.pattern("match", 1), JSON: r.str("json"), File: r.inside("file", ""), Unit: r.str("unit"),
		Better: r.choice("better", "", "higher", "lower"), Tie: r.fraction("tie", 0.5, 0), Range: r.block.Range,
	}
	if r.has("match") == r.has("json") {
		r.fail(r.block.Range, "How is the metric read?", "metric %q needs exactly one of match = \"regexp with a group\" and json = \"path.to.value\".", m.Name)
	}
	return m
}

var (
	angled    = regexp.MustCompile(`^(?:--?[\w-]+=)?<[A-Za-z][\w-]*>$`)
	bracketed = regexp.MustCompile(`^\[--?[A-Za-z]`)
)
