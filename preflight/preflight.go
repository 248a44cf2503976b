// Package preflight finds out, before anything is spent, what a project's plan cannot do: patches that do not apply,
// scripts that do not exist, flags that a script does not know, models that do not fit.
//
// Its checks are pure: they get plain data and read files of revisions through an interface. They run nothing and reach
// no network. A check fails a candidate only for what is certain to fail; everything else is a warning or unverified.
package preflight

import (
	"cmp"
	"context"
	"slices"

	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/python"
	"github.com/benchgraph/benchgraph/preflight/requirement"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

// Check names what was looked at.
type Check string

// The checks.
const (
	Wheel        Check = "wheel"        // a prebuilt wheel or a build
	Image        Check = "image"        // the base image
	Patch        Check = "patch"        // applies to its exact tree
	Protect      Check = "protect"      // leaves the files alone that the variant protects
	Link         Check = "link"         // no link of the tree leads out of the tree
	LFS          Check = "lfs"          // no file of the tree is a pointer of Git LFS
	Script       Check = "script"       // the program that a command starts
	Flag         Check = "flag"         // the options that the program knows
	Path         Check = "path"         // files that a command names
	Parent       Check = "parent"       // the declared parent is git's
	Twice        Check = "twice"        // no other commit has the same revision, parent and params
	Model        Check = "model"        // exists, and can be had
	Gated        Check = "gated"        // needs a token
	Memory       Check = "memory"       // fits the devices
	Architecture Check = "architecture" // the engine has it, and the devices are of the right kind
	Version      Check = "version"      // known issues
	Dataset      Check = "dataset"      // the data of a serving benchmark
	Disk         Check = "disk"         // room for weights and images
	Placeholder  Check = "placeholder"  // commands that were never filled in
	Methodology  Check = "methodology"  // variants are measured in the same way
	Driver       Check = "driver"       // of the devices, against the CUDA of images
)

// Status is what a check found.
type Status string

// The states. Fail alone takes a candidate out.
const (
	OK         Status = "ok"
	Warn       Status = "warn"
	Fail       Status = "fail"
	Unverified Status = "unverified"
)

// Finding is what one check found of one candidate, or of a whole commit.
type Finding struct {
	Check     Check  `json:"check"`
	Commit    string `json:"commit"`    // empty: of the project
	Candidate string `json:"candidate"` // commit/variant; empty: of all variants of the commit
	Status    Status `json:"status"`
	Evidence  string `json:"evidence"`
	Remedy    string `json:"remedy"`
	Place     string `json:"place"`               // file:line
	Benchmark string `json:"benchmark,omitempty"` // address, of what was found of its commands

	Skip bool `json:"-"` // Fail: there is nothing to measure on this machine, which is nobody's fault
}

// Input is all that the checks know beside the files of revisions.
type Input struct {
	Commits    []Commit
	Candidates []Candidate
	Benchmarks []Benchmark
	Wheels     []WheelState
	Images     []ImageState
	Issues     []Issue
	Patches    map[string]string               // by candidate: why its patch is refused; empty: it applies
	Trespasses map[string]Refusal              // by candidate: its revision or its patch changes protected files
	Escapes    map[string]string               // by revision: which link leads out of its tree
	Pointers   map[string]string               // by revision: which of its files are pointers of Git LFS
	Lost       map[string]Refusal              // by revision: why its tree cannot be read
	Devices    map[string][]requirement.Device // by machine on which something is measured; none: not known
	FreeDisk   int64                           // bytes where results are kept; 0: not known
	Models     func() []requirement.Model      `json:"-"` // the project's last; read for a command that names one
}

// Commit is a commit under study.
type Commit struct {
	Name    string
	Repo    string // empty: it has no code
	Rev     string // 40 digits
	Parent  string // as declared or found, 40 digits
	Title   string
	Params  string // as JSON
	Place   string
	Named   bool     // a benchmark is declared for it, though a mistake may have taken that out
	Known   bool     // git was asked: the next fields count
	Parents []string // of git
	Changed []string // paths
	After   bool     // the declared parent has the commit among its own ancestors
	Related bool     // the declared parent is an ancestor of the commit
}

// Refusal is why a candidate is refused, and what helps.
type Refusal struct{ Why, Remedy string }

// Candidate is one commit in one variant.
type Candidate struct {
	Key      string
	Commit   string
	Baseline bool
	Tree     revision.Tree
	Place    string
	Excluded bool   // declared so: nothing of it is checked
	Reason   string // of a declared skip; empty: none is declared
}

// Benchmark is one instance of a benchmark block.
type Benchmark struct {
	Address   string
	Commit    string
	Candidate string
	Place     string
	Image     bool                     // its commands run in containers
	Client    revision.Tree            // that the commands run in
	Engine    revision.Tree            // that is installed where the server and offline commands run
	Installed revision.Tree            // that is installed where the client of a server runs
	Data      map[string]revision.Tree // names laid into the directory; the zero Tree for other results than trees
	Mounts    []string                 // targets, and paths of caches
	Env       map[string]string
	ServerEnv map[string]string
	Secrets   []string
	Command   program.Text
	Fill      program.Text // run in the place of Command to fill caches; empty: Command itself is, or there are none
	Server    program.Text // empty: none
	Machine   string       // on which it is measured, as in Devices
	GPUs      int          // devices of a sample; 0: none asked for
	Memory    int64
	Model     string   // RE2 on the name of devices
	Mended    bool     // recipes may change the files that the commands find
	FixEnv    []string // variables that fixes may set
}

// WheelState says where a wheel comes from.
type WheelState struct {
	Candidate string
	Place     string
	Serves    string   // URL; empty: none does
	Asked     []string // URLs, in order
	Known     bool     // they were asked, or the lock has the answer
	Builds    bool     // there is a build block
	Changed   bool     // the patch changes what the wheel of Serves holds
	From      string   // revision that the wheel was made from, when it is not the candidate's own
}

// ImageState says whether a base image can be had.
type ImageState struct {
	Candidate string
	Place     string
	Name      string
	Unknown   string // why nobody knows which one it is; empty: it is known
	// variables of its configuration that say which driver it needs; empty: it has none, or they are not known
	Requires map[string]string
	Machines []string // of the benchmarks with devices that run in it, as in Input.Devices
}

// Issue is a known issue that holds for a candidate.
type Issue struct {
	Name      string
	Candidate string
	Place     string
	Reason    string
	Image     bool         // the probe runs in a container, beside the tree and not in it
	Probe     program.Text // empty: the declared scope decides alone
}

// Run makes all checks. An error means that the files of revisions could not be read; the findings that need none are
// returned nevertheless.
func Run(ctx context.Context, in *Input, r revision.Reader) ([]Finding, error) {
	files := revision.New(r, func(rev string) string { return in.Lost[rev].Why })
	scripts := python.NewReader(files)
	for {
		c := &checker{in: in, files: files, python: scripts}
		c.all()
		more, err := files.Load(ctx)
		if err != nil { // it was noted: the next checks do without
			c = &checker{in: in, files: files, python: scripts}
			c.all()
		}
		if err != nil || !more {
			return c.sorted(), err
		}
	}
}

// checker makes the checks of one round.
type checker struct {
	in     *Input
	files  *revision.Files
	python *python.Reader
	found  []Finding
	place  string // of what is being checked
	commit string
	of     string // candidate
	bench  string // address
}

func (c *checker) all() {
	c.commits()
	c.patches()
	c.supplies()
	c.issues()
	excluded := map[string]bool{}
	for _, cand := range c.in.Candidates {
		excluded[cand.Key] = cand.Excluded
	}
	for i := range c.in.Benchmarks {
		if b := &c.in.Benchmarks[i]; !excluded[b.Candidate] {
			c.commit, c.of, c.place, c.bench = b.Commit, b.Candidate, b.Place, b.Address
			c.benchmark(b)
		}
	}
	c.bench = ""
	c.uncovered()
	c.disk()
	c.drivers()
}

// add notes a finding of the candidate that is being checked.
func (c *checker) add(k Check, s Status, evidence, remedy string) {
	c.found = append(c.found, Finding{Check: k, Commit: c.commit, Candidate: c.of, Status: s, Evidence: evidence,
		Remedy: remedy, Place: c.place, Benchmark: c.bench})
}

// sorted is what was found, each finding once, the worst first.
func (c *checker) sorted() []Finding {
	rank := map[Status]int{Fail: 0, Warn: 1, Unverified: 2, OK: 3}
	order := map[string]int{"": -1}
	for i, commit := range c.in.Commits {
		order[commit.Name] = i
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Status], rank[b.Status]), cmp.Compare(a.Check, b.Check),
			cmp.Compare(order[a.Commit], order[b.Commit]),
			cmp.Compare(a.Candidate, b.Candidate), cmp.Compare(a.Evidence, b.Evidence))
	})
	return slices.Compact(c.found)
}
