package results

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Known is the record of a plan and of the journal from which another machine judges, together with the file and the
// results of blocks. It is plain data: judging by it makes no plan, and asks no repository, image or device.
type Known struct {
	Allow    []string       `json:"allow_mismatch,omitempty"`
	Nodes    []KnownNode    `json:"nodes"`
	Groups   []KnownGroup   `json:"groups"`
	Compares []KnownCompare `json:"compares"`
	Replicas []Replica      `json:"replicas,omitempty"` // of other classes of machines
}

// KnownNode is a node with its key and how it ended.
type KnownNode struct {
	Address string           `json:"address"`
	Kind    string           `json:"kind"`
	Key     cache.Key        `json:"key"`
	Text    string           `json:"text,omitempty"` // description, whose SHA-256 is the key
	Action  engine.Action    `json:"action"`
	Reason  string           `json:"reason,omitempty"`
	Never   bool             `json:"never,omitempty"`
	Failure *failure.Failure `json:"failure,omitempty"`
	// the stored result; only blocks and the nodes that gather from blocks list their files
	Result *cache.Meta `json:"result,omitempty"`
}

// KnownGroup is the candidates of a benchmark that are measured together.
type KnownGroup struct {
	Commit  string              `json:"commit,omitempty"`
	Members []KnownMember       `json:"members"`
	Blocks  []KnownBlock        `json:"blocks"`
	Rule    []methodology.Field `json:"rule"`
}

// KnownBlock is one block: the address of its node, and the names of its members.
type KnownBlock struct {
	Trial   string   `json:"trial"`
	Members []string `json:"members"`
}

// KnownMember is one variant in a group.
type KnownMember struct {
	Name        string                  `json:"name"`
	Benchmark   string                  `json:"benchmark"` // address
	Candidate   string                  `json:"candidate,omitempty"`
	Baseline    bool                    `json:"baseline,omitempty"`
	Patched     bool                    `json:"patched,omitempty"`
	Absent      stats.Outcome           `json:"absent,omitempty"`
	Why         string                  `json:"why,omitempty"`
	Methodology methodology.Description `json:"methodology"`
	Fixes       []group.Fix             `json:"fixes,omitempty"`
	Caveats     []stats.Caveat          `json:"caveats,omitempty"`
	Tries       map[int][]sample.Try    `json:"tries,omitempty"`
}

// KnownCompare has the parts of a compare's findings that no block tells: candidates that no benchmark measures, and
// failures and costs from the journal.
type KnownCompare struct {
	Compare   string             `json:"compare"`
	Uncovered []stats.Comparison `json:"uncovered,omitempty"`
	Failures  []findings.Failed  `json:"failures,omitempty"`
	Spent     []findings.Spent   `json:"spent,omitempty"`
}

// Replica has the results of another class of machines for the same work.
type Replica struct {
	Class string              `json:"class"`
	Known *Known              `json:"known"`
	Found []findings.Findings `json:"-"`
}

// Known returns the record of all that findings of a plan rest on, beside the file and the results of blocks.
func (s *Stored) Known(ctx context.Context, found []findings.Findings) (*Known, error) {
	k := &Known{Allow: s.Allow}
	var compares []*hclspec.Compare
	for _, f := range found {
		c := compareOf(s.Spec, f.Compare)
		if c == nil {
			return nil, fmt.Errorf("compare.%s is not in the file", f.Compare)
		}
		compares = append(compares, c)
		k.Compares = append(k.Compares, KnownCompare{Compare: f.Compare, Uncovered: s.CaseOf(c).Uncovered,
			Failures: f.Failures, Spent: f.Spent})
	}
	files := map[string]bool{}
	for _, g := range s.Groups {
		if !slices.ContainsFunc(compares, func(c *hclspec.Compare) bool { return s.IsAbout(c, g) }) {
			continue
		}
		k.Groups = append(k.Groups, knownGroup(s.ForJudge(g)))
		for _, m := range g.Members {
			files[m.Bench.Address.String()] = true
		}
		for _, t := range g.Trials {
			files[t.At.String()] = true
		}
	}
	for i := range s.Plan.Steps {
		n, err := s.knownNode(ctx, &s.Plan.Steps[i], files)
		if err != nil {
			return nil, err
		}
		k.Nodes = append(k.Nodes, n)
	}
	return k, nil
}

// LostError reports that the raw output of a block is gone, although a benchmark still has the numbers of the block.
type LostError struct{ Block, Benchmark string } // addresses

func (e *LostError) Error() string {
	return fmt.Sprintf("the raw output of %s is gone, so that nobody can check the numbers of %s", e.Block, e.Benchmark)
}

// Lost returns a LostError if a benchmark has numbers that Judge cannot read from blocks.
func (k *Known) Lost() error {
	stored := map[string]bool{}
	for i := range k.Nodes {
		stored[k.Nodes[i].Address] = k.Nodes[i].Result != nil
	}
	for i := range k.Groups {
		for _, b := range k.Groups[i].Blocks {
			for _, m := range k.Groups[i].Members {
				if stored[m.Benchmark] && !stored[b.Trial] && slices.Contains(b.Members, m.Name) {
					return &LostError{b.Trial, m.Benchmark}
				}
			}
		}
	}
	for _, r := range k.Replicas {
		if r.Known == nil {
			continue
		}
		if err := r.Known.Lost(); err != nil {
			return fmt.Errorf("machines of class %.80q: %w", r.Class, err)
		}
	}
	return nil
}

// compareOf returns the compare of an instance; nil if the file does not declare it.
func compareOf(spec *hclspec.Spec, instance string) *hclspec.Compare {
	for i := range spec.Compares {
		if spec.Compares[i].Address.Instance() == instance {
			return &spec.Compares[i]
		}
	}
	return nil
}

func knownGroup(g *group.Group) KnownGroup {
	k := KnownGroup{Commit: g.Commit, Rule: g.Rule, Blocks: []KnownBlock{}}
	for _, b := range g.Blocks {
		k.Blocks = append(k.Blocks, KnownBlock{b.At.String(), b.Members})
	}
	for i := range g.Members {
		m := &g.Members[i]
		k.Members = append(k.Members, KnownMember{Name: m.Name, Benchmark: m.Bench.Address.String(),
			Candidate: m.Bench.Candidate, Baseline: m.Baseline,
			Patched: m.Patched, Absent: m.Absent, Why: m.Why, Methodology: m.Methodology, Fixes: m.Fixes,
			Caveats: m.Caveats, Tries: m.Tries})
	}
	return k
}

// knownNode returns the record of a step's node. The record lists the node's files if files has the node's address.
func (s *Stored) knownNode(ctx context.Context, step *engine.Step, files map[string]bool) (KnownNode, error) {
	end, err := s.end(ctx, step)
	if err != nil {
		return KnownNode{}, err
	}
	n := KnownNode{Address: step.Node.Address, Kind: step.Node.Kind, Key: step.Key, Text: step.Text, Action: end.Action,
		Reason: end.Reason, Never: end.Never, Failure: end.Failure}
	if end.Entry.Dir != "" {
		n.Result = &end.Entry.Meta
		if !files[n.Address] {
			n.Result.Files = nil
		}
		if n.Result.Key == n.Key {
			n.Result.Text = "" // n.Text has it
		}
	}
	return n, nil
}

// OtherPatches compares the patches of a file with the digests in the keys of its sources. It returns a sentence for
// each patch that differs. digests has the SHA-256 of each file of the project, by its name below root.
func (k *Known) OtherPatches(spec *hclspec.Spec, digests map[string]string, root string) (sentences []string) {
	texts := map[string]string{}
	for i := range k.Nodes {
		texts[k.Nodes[i].Address] = k.Nodes[i].Text
	}
	for i := range spec.Sources {
		s := &spec.Sources[i]
		text := texts[s.Address.String()] // of a skipped source, it names no patch
		if strings.Contains(text, "\npatch ") &&
			!strings.Contains(text, fmt.Sprintf("\npatch %q\n", digests[root+s.Patch])) {
			sentences = append(sentences, fmt.Sprintf("%q is not the patch that was measured", s.Patch))
		}
	}
	return sentences
}

// Judge judges the compares of the record by the rules of a file, as Findings does with a plan. dir returns the
// directory of the files of a node's result; "" if they are not there. All numbers are read from the raw output of
// blocks, and none from the samples that a benchmark gathered: nobody could tell where these came from.
func (k *Known) Judge(spec *hclspec.Spec, dir func(*KnownNode) string) ([]findings.Findings, error) {
	j := judging{Known: k, spec: spec, benches: map[string]*hclspec.Benchmark{}, ends: map[string]engine.End{}}
	for i := range spec.Benchmarks {
		j.benches[spec.Benchmarks[i].Address.String()] = &spec.Benchmarks[i]
	}
	for i := range k.Nodes {
		n := &k.Nodes[i]
		end := engine.End{Address: n.Address, Action: n.Action, Reason: n.Reason, Never: n.Never, Failure: n.Failure}
		if n.Result != nil {
			end.Entry = cache.Entry{Meta: *n.Result, Dir: dir(n)}
		}
		j.ends[n.Address] = end
	}
	var all []findings.Findings
	for i := range k.Compares {
		c, err := j.caseOf(&k.Compares[i])
		if err != nil {
			return nil, err
		}
		found, err := c.Judge(j.ends)
		if err != nil {
			return nil, err
		}
		found.Failures, found.Spent = k.Compares[i].Failures, k.Compares[i].Spent
		all = append(all, found)
	}
	for _, r := range k.Replicas {
		if r.Known == nil || len(r.Known.Replicas) > 0 {
			return nil, fmt.Errorf("what %.80q measured is not known, or has replicas of its own", r.Class)
		}
		others, err := r.Known.Judge(spec, dir)
		if err != nil {
			return nil, err
		}
		findings.Beside(all, others)
	}
	return all, nil
}

// All returns the nodes of all classes of machines.
func (k *Known) All() []*KnownNode {
	var all []*KnownNode
	for i := range k.Nodes {
		all = append(all, &k.Nodes[i])
	}
	for _, r := range k.Replicas {
		if r.Known != nil {
			all = append(all, r.Known.All()...)
		}
	}
	return all
}

// judging is a judgement by a record.
type judging struct {
	*Known
	spec    *hclspec.Spec
	benches map[string]*hclspec.Benchmark // by address
	ends    map[string]engine.End
}

func (j *judging) caseOf(known *KnownCompare) (*findings.Case, error) {
	declared := compareOf(j.spec, known.Compare)
	if declared == nil {
		return nil, fmt.Errorf("compare.%s: the file does not declare it", known.Compare)
	}
	c := &findings.Case{Compare: declared, Of: map[hclspec.Address]bool{}, Uncovered: known.Uncovered,
		Rank: map[string]int{}, Allow: j.Allow}
	for _, a := range c.Compare.Of {
		c.Of[a] = true
	}
	for i := range j.spec.Candidates {
		c.Rank[j.spec.Candidates[i].Key] = i
	}
	for i := range j.Groups {
		g, err := j.group(&j.Groups[i])
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(g.Members, func(m group.Member) bool { return c.Of[m.Bench.Address] }) {
			c.Groups = append(c.Groups, *g)
		}
	}
	return c, nil
}

// group returns a group from its record, with its benchmarks from the file.
func (j *judging) group(known *KnownGroup) (*group.Group, error) {
	g := &group.Group{Commit: known.Commit, Rule: known.Rule}
	for _, b := range known.Blocks {
		at, err := hclspec.ParseAddress(b.Trial)
		if err != nil {
			return nil, err
		}
		g.Blocks = append(g.Blocks, group.Block{At: at, Members: b.Members})
	}
	names := map[string]bool{}
	for i := range known.Members {
		m := &known.Members[i]
		bench := j.benches[m.Benchmark]
		if bench == nil || names[m.Name] {
			return nil, fmt.Errorf("%s: the file does not declare it, or it is named twice", m.Benchmark)
		}
		names[m.Name] = true
		if i == 0 {
			g.Design = bench.Design
		}
		g.Design = group.Together(g.Design, bench.Design)
		g.Members = append(g.Members, group.Member{Name: m.Name, Baseline: m.Baseline, Patched: m.Patched,
			Bench: bench, Absent: m.Absent, Why: m.Why,
			Methodology: m.Methodology, Fixes: m.Fixes, Caveats: m.Caveats, Tries: m.Tries})
		end := j.ends[m.Benchmark]
		end.Entry.Dir = ""
		j.ends[m.Benchmark] = end
	}
	for _, b := range g.Blocks {
		for _, name := range b.Members {
			if !names[name] {
				return nil, fmt.Errorf("%s: %q is no member of its group", b.At, name)
			}
		}
	}
	return g, nil
}
