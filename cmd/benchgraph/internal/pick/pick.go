// Package pick finds the nodes that a user names: by an address, or by a pattern of addresses.
package pick

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Quoted returns an address or a pattern as files name it: with the quotes around an instance key, which shells remove,
// and with letters and their accents in one character each.
func Quoted(pattern string) string {
	pattern = cty.NormalizeString(pattern)
	name, key, ok := strings.Cut(pattern, "[")
	if !ok || strings.HasPrefix(key, `"`) || !strings.HasSuffix(key, "]") || strings.ContainsAny(key, `"`) {
		return pattern
	}
	return name + `["` + strings.TrimSuffix(key, "]") + `"]`
}

// Candidate returns the candidate of an address such as benchmark.NAME["COMMIT/VARIANT"], with the run that may follow
// it, and the benchmark; "" if the address is not that of a benchmark. It returns a text that is no such address
// unchanged.
func Candidate(text string) (candidate, benchmark string) {
	text = cty.NormalizeString(text)
	address, run := text, ""
	if i := strings.LastIndex(text, "]@"); i >= 0 {
		address, run = text[:i+1], text[i+1:]
	}
	at, err := hclspec.ParseAddress(Quoted(address))
	if err != nil || at.Key == "" {
		return text, ""
	}
	if at.Kind == "benchmark" {
		benchmark = at.Name
	}
	return at.Key + run, benchmark
}

// nodeKinds are the kinds of blocks that are nodes themselves.
var nodeKinds = []string{
	"benchmark", "canary", "compare", "fetch", "image", "repo", "report", "source", "task", "wheel",
}

// derived has the kinds of nodes that every block of another kind has, too.
var derived = map[string]string{"trial": "benchmark", "source": "repo"}

// Declared returns an error for an address or pattern whose name no block of the files has. It needs no graph, and so
// asks no device driver, which may hang.
func Declared(spec *hclspec.Spec, texts ...string) error {
	for _, text := range texts {
		at, err := hclspec.ParseAddress(Quoted(text))
		if err != nil {
			return Malformed(err)
		}
		if at.Name = strings.TrimSuffix(at.Name, " "+hclspec.Tried); tried(text) && at.Kind == "compare" {
			continue
		}
		var known []string
		if !slices.ContainsFunc(spec.Declared, func(block hclspec.Address) bool {
			if slices.Contains(nodeKinds, block.Kind) {
				known = append(known, block.String())
			}
			if derived[at.Kind] == block.Kind {
				known = append(known, at.Kind+"."+block.Name)
			}
			ok, err := hclspec.MatchAddress("*."+at.Name, block.String())
			return ok || err != nil || block.Name == at.Name
		}) {
			return None(text, known)
		}
	}
	return nil
}

// Words returns the words of the files for a placeholder: CANDIDATE, COMMIT, BENCHMARK, METRIC or COMPARE.
func Words(spec *hclspec.Spec, placeholder string) (words []string) {
	for _, c := range spec.Candidates {
		switch placeholder {
		case "CANDIDATE":
			words = append(words, c.Key)
		case "COMMIT":
			words = append(words, c.Commit)
		}
	}
	for _, b := range spec.Benchmarks {
		switch placeholder {
		case "BENCHMARK":
			words = append(words, b.Address.Name)
		case "METRIC":
			words = append(words, b.Metrics.Primary)
			for _, m := range b.Metrics.Custom {
				words = append(words, m.Name)
			}
		}
	}
	for _, c := range spec.Compares {
		switch placeholder {
		case "COMPARE":
			words = append(words, c.Address.Instance())
		case "METRIC":
			words = append(words, c.Metrics...)
		}
	}
	return words
}

// Malformed returns the error for a text that is no address.
func Malformed(err error) error {
	return &cli.UsageError{Message: err.Error(),
		Remedy: `an address is kind.name or kind.name["key"]; globs are allowed`}
}

// None returns the error for a pattern that matches none of the known addresses. It suggests the nearest address, or,
// if the pattern stands for all instances of a name, the nearest name.
func None(pattern string, known []string) error {
	if slices.ContainsFunc(known, func(address string) bool {
		ok, _ := hclspec.MatchAddress(pattern, address) // the pattern is valid, since it was matched before
		return ok
	}) {
		return cli.Hint("Leave -exclude out, or select something else.", "nothing is left of %s: it is excluded, or "+
			"needs something that is", pattern)
	}
	if name, each := strings.CutSuffix(pattern, `["*"]`); each && slices.ContainsFunc(known, func(at string) bool {
		ok, _ := hclspec.MatchAddress(name, at)
		return ok
	}) {
		return cli.Hint(`In a pattern, * ends at a slash. Write `+name+` for all instances, or ["**"].`,
			"there is no node %s", pattern)
	}
	meant := pattern
	if name, key, keyed := strings.Cut(pattern, "["); !strings.Contains(name, "*") &&
		(!keyed || strings.Contains(key, "*")) {
		names := make([]string, len(known))
		for i, address := range known {
			names[i], _, _ = strings.Cut(address, "[")
		}
		if !slices.Contains(names, name) {
			meant, known = name, names
		}
	}
	if tried(pattern) {
		return cli.Hint("benchgraph logs prints the output of its last attempt. The same try again, which runs "+
			"nothing that has a result, answers with -json where its logs are.",
			"there is no node %s: no file declares the nodes of a try", pattern)
	}
	return cli.Hint("benchgraph graph -format json lists all addresses.", "there is no node %s%s", pattern,
		cli.Suggest(meant, known))
}

// tried reports whether only a try has such an address: that of its compare, blocks, benchmarks or candidate.
func tried(address string) bool {
	at, err := hclspec.ParseAddress(Quoted(address))
	return err == nil && (strings.HasSuffix(at.Name, " "+hclspec.Tried) ||
		strings.HasSuffix(at.Key, "/"+hclspec.Tried) || at.Kind == "compare" && at.Name == hclspec.Tried)
}

// Nodes returns the nodes that a text stands for: an address, or a pattern of addresses. There is at least one.
func Nodes(p *engine.Plan, text string) ([]*engine.Step, error) {
	pattern := Quoted(text)
	if step, ok := p.Step(pattern); ok {
		return []*engine.Step{step}, nil
	}
	var found []*engine.Step
	var known []string
	for i := range p.Steps {
		known = append(known, p.Steps[i].Node.Address)
		ok, err := hclspec.MatchAddress(pattern, p.Steps[i].Node.Address)
		if err != nil {
			return nil, Malformed(err)
		}
		if ok {
			found = append(found, &p.Steps[i])
		}
	}
	if len(found) == 0 {
		return nil, None(text, known)
	}
	return found, nil
}

// Node returns the single node that a text stands for.
func Node(p *engine.Plan, text string) (*engine.Step, error) {
	found, err := Nodes(p, text)
	if err != nil {
		return nil, err
	}
	return Single(found, text)
}

// Single returns the only one of the found nodes. Several are an error.
func Single(found []*engine.Step, text string) (*engine.Step, error) {
	if len(found) == 1 {
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.Node.Address
	}
	return nil, cli.Hint("Name one of them.", "%s means %d nodes: %s", text, len(found), printable.Some(names, 5))
}
