package preflight

import (
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/python"
)

// flags checks the options of a program by its parser. other is the parser of the benchmark's other side; nil if none
// was read.
func (c *checker) flags(p *program.Program, a, other *python.Parser) {
	clean := true
	doubt := func(evidence, remedy string) {
		clean = false
		if a.Unread == "" && !a.Tolerates && !p.Maybe && !p.Mended {
			c.add(Flag, Fail, evidence, remedy)
			return
		}
		if a.Unread != "" {
			evidence += "; " + a.Unread
		}
		c.add(Flag, Unverified, evidence, remedy)
	}
	given := program.Flags(p.Args)
	for _, f := range given {
		if strings.Contains(f.Name, "$") || strings.Contains(f.Name, sh.Ref) {
			continue
		}
		if _, k := a.Match(f.Name); k == python.Unknown {
			doubt(fmt.Sprintf("%s does not know %s", p.Title(), f.Name), remedyFor(p, f.Name, a, other))
		} else if mistake, remedy := a.Refuses(&f); mistake != "" {
			doubt(p.Title()+": "+mistake, remedy)
		}
	}
	for _, missing := range a.Missing(given) {
		doubt(fmt.Sprintf("%s requires %s", p.Title(), missing), "add it to the command")
	}
	if w, ok := p.Value("--speculative-model"); ok && w.Text == "[ngram]" && !p.Has("--ngram-prompt-lookup-max") {
		clean = false
		remedy := "say how many tokens are looked up, such as --ngram-prompt-lookup-max 4"
		if _, k := a.Match("--ngram-prompt-lookup-max"); k == python.Unknown {
			remedy = "measure by a server: this program does not have the option"
		}
		c.add(Flag, Warn,
			p.Title()+": --speculative-model [ngram] goes with --ngram-prompt-lookup-max, which is not given", remedy)
	}
	switch {
	case a.Unread != "" && clean && len(a.Options) == 0:
		c.add(Flag, Unverified, p.Title()+": "+a.Unread, "")
	case clean:
		c.add(Flag, OK, fmt.Sprintf("%s knows all %d options", p.Title(), len(given)), "")
	}
}

// remedyFor returns where an unknown option belongs, or which option was perhaps meant.
func remedyFor(p *program.Program, name string, a, other *python.Parser) string {
	if other != nil {
		if _, k := other.Match(name); k == python.Known {
			if p.Side == program.Server {
				return name + " belongs to the client: put it into the benchmark's command"
			}
			return name + " belongs to the server: put it into server.command"
		}
	}
	if best := a.Near(name); best != "" {
		return fmt.Sprintf("did you mean %s? Else leave it out: this revision does not have it", best)
	}
	if p.Side == program.Client && strings.Contains(engineFlags, " "+program.Canonical(name)+" ") {
		return name + " belongs to the server: put it into server.command"
	}
	return "leave it out: this revision does not have it"
}

// engineFlags are options of every serving engine, for benchmarks whose server cannot be read.
const engineFlags = " " +
	"--tensor-parallel-size -tp --tp --dtype --quantization -q --max-model-len --gpu-memory-utilization " +
	"--enable-prefix-caching --enable-chunked-prefill --max-num-batched-tokens --max-num-seqs " +
	"--kv-cache-dtype --enforce-eager --load-format --use-v2-block-manager --speculative-model " +
	"--num-speculative-tokens --pipeline-parallel-size --guided-decoding-backend --multi-step " +
	"--num-scheduler-steps --trust-remote-code "
