// Package preflight finds mistakes in a project's plan before anything is spent: patches that do not apply, scripts
// that do not exist, flags that a script does not know, models that do not fit.
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

// Check is the name of a check.
type Check string

// The checks.
const (
	Wheel        Check = "wheel"        // a prebuilt wheel or a build
	Image        Check = "image"        // the base image
	Patch        Check = "patch"        // the patch applies to its exact tree
	Protect      Check = "protect"      // the candidate leaves protected files alone
	Link         Check = "link"         // no link of the tree leads out of the tree
	LFS          Check = "lfs"          // no file of the tree is a pointer of Git LFS
	Script       Check = "script"       // the program that a command starts
	Flag         Check = "flag"         // the options that the program knows
	Path         Check = "path"         // files that a command names
	Parent       Check = "parent"       // the declared parent is that of git
	Twice        Check = "twice"        // no other commit has the same revision, parent and params
	Model        Check = "model"        // the model exists
	Gated        Check = "gated"        // the model needs a token
	Memory       Check = "memory"       // the model fits the devices
	Architecture Check = "architecture" // the engine has the architecture, and the devices are of the right kind
	Version      Check = "version"      // known issues
	Dataset      Check = "dataset"      // the data of a serving benchmark
	Disk         Check = "disk"         // room for weights and images
	Placeholder  Check = "placeholder"  // commands that were never filled in
	Methodology  Check = "methodology"  // variants are measured in the same way
	Driver       Check = "driver"       // the drivers of the devices serve the CUDA of images
)

// Status is the result of a check.
type Status string

// The results. Only Fail takes a candidate out.
const (
	OK         Status = "ok"
	Warn       Status = "warn"
	Fail       Status = "fail"
	Unverified Status = "unverified"
)

// Finding is the result of one check for a candidate, or for a whole commit.
type Finding struct {
	Check     Check  `json:"check"`
	Commit    string `json:"commit"`    // empty: about the project
	Candidate string `json:"candidate"` // commit/variant; empty: about all variants of the commit
	Status    Status `json:"status"`
	Evidence  string `json:"evidence"`
	Remedy    string `json:"remedy"`
	Place     string `json:"place"`               // file:line
	Benchmark string `json:"benchmark,omitempty"` // address, if the finding is about its commands

	Skip bool `json:"-"` // with Fail: nothing can be measured on this machine, which is nobody's fault
}

// Input is the data of the checks, beside the files of revisions.
type Input struct {
	Commits    []Commit
	Candidates []Candidate
	Benchmarks []Benchmark
	Wheels     []WheelState
	Images     []ImageState
	Issues     []Issue
	Patches    map[string]string               // why a patch is refused, by candidate; empty or OnlyModes: it applies
	Trespasses map[string]Refusal              // candidates whose revision or patch changes protected files
	Idle       map[string][]Refusal            // patterns of protect that match nothing, by candidate
	Escapes    map[string]string               // the link that leads out of the tree, by revision
	Pointers   map[string]string               // the files that are pointers of Git LFS, by revision
	Lost       map[string]Refusal              // why the tree cannot be read, by revision
	Devices    map[string][]requirement.Device // by machine that measures; empty: not known
	FreeDisk   int64                           // bytes, where results are kept; 0: not known
	Models     func() []requirement.Model      `json:"-"` // the project's last; called if a command names one
}

// Commit is a commit under study.
type Commit struct {
	Name    string
	Repo    string // empty: the commit has no code
	Rev     string // 40 digits
	Parent  string // as declared or found, 40 digits
	Title   string
	Params  string // as JSON
	Place   string
	Named   bool     // a benchmark is declared for it, even if a mistake took the benchmark out
	Known   bool     // git was asked, so the next fields count
	Parents []string // by git
	Changed []string // paths
	After   bool     // the declared parent has the commit among its own ancestors
	Related bool     // the declared parent is an ancestor of the commit
}

// Refusal is why a candidate is refused, with a remedy.
type Refusal struct{ Why, Remedy string }

// Candidate is one commit in one variant.
type Candidate struct {
	Key      string
	Commit   string
	Baseline bool
	Tree     revision.Tree
	Place    string
	Excluded bool   // the file excludes it: nothing of it is checked
	Reason   string // of a skip block; empty: there is none
}

// Benchmark is one instance of a benchmark block.
type Benchmark struct {
	Address   string
	Commit    string
	Candidate string
	Place     string
	Image     bool                     // its commands run in containers
	Client    revision.Tree            // in the working directory of the commands
	Engine    revision.Tree            // installed where the server and offline commands run
	Installed revision.Tree            // installed where the client of a server runs
	Data      map[string]revision.Tree // by name in the working directory; the zero Tree for results that are no tree
	Mounts    []string                 // targets of mounts, and paths of caches
	Env       map[string]string
	ServerEnv map[string]string
	Secrets   []string
	Command   program.Text
	Fill      program.Text // runs instead of Command to fill caches; empty: Command does, or there are no caches
	Server    program.Text // empty: there is none
	Machine   string       // that measures it, as in Input.Devices
	GPUs      int          // devices for each sample; 0: none
	Memory    int64
	Model     string   // RE2 for the name of devices
	Mended    bool     // fixes may change the files of the commands
	FixEnv    []string // variables that fixes may set
}

// WheelState is the supply of a wheel.
type WheelState struct {
	Candidate string
	Place     string
	Serves    string   // URL; empty: no source serves it
	Asked     []string // URLs of prebuilt sources, in order
	Known     bool     // the sources were asked, or the lock has the answer
	Builds    bool     // there is a build block
	Changed   bool     // the patch changes files that are in the wheel of Serves
	From      string   // revision of the wheel, if it is not the candidate's own
}

// ImageState is the supply of a base image.
type ImageState struct {
	Candidate string
	Place     string
	Name      string
	Unknown   string // why its digest is not known; empty: it is known
	// variables of the image that say which driver it needs; empty: none, or not known
	Requires map[string]string
	Machines []string // that measure benchmarks with devices in the image, as in Input.Devices
}

// Issue is a known issue that holds for a candidate.
type Issue struct {
	Name      string
	Candidate string
	Place     string
	Reason    string
	Image     bool         // the probe runs in a container, where the tree is not the working directory
	Probe     program.Text // empty: the declared scope decides alone
}

// Run makes all checks. The error is that of reading files of revisions; it also returns the findings that need no such
// files.
func Run(ctx context.Context, in *Input, r revision.Reader) ([]Finding, error) {
	files := revision.New(r, func(rev string) string { return in.Lost[rev].Why })
	scripts := python.NewReader(files)
	for {
		c := &checker{in: in, files: files, python: scripts}
		c.all()
		more, err := files.Load(ctx)
		if err != nil { // files has noted the error: the next checks do without the unread files
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
	in        *Input
	files     *revision.Files
	python    *python.Reader
	found     []Finding
	place     string // of the subject of the check
	commit    string
	candidate string
	bench     string // address
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
			c.commit, c.candidate, c.place, c.bench = b.Commit, b.Candidate, b.Place, b.Address
			c.benchmark(b)
		}
	}
	c.bench = ""
	c.uncovered()
	c.disk()
	c.drivers()
}

// add adds a finding about the candidate that is being checked.
func (c *checker) add(k Check, s Status, evidence, remedy string) {
	c.found = append(c.found, Finding{Check: k, Commit: c.commit, Candidate: c.candidate, Status: s, Evidence: evidence,
		Remedy: remedy, Place: c.place, Benchmark: c.bench})
}

// sorted returns the findings, each once, the worst first.
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
