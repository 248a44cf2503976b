// Package hclspec reads benchmarks.hcl.
//
// It turns the files of a project into a Spec: plain values, cross-checked, that still know their places in the file.
// It runs nothing, reaches no network and reads no file outside the project's directory.
package hclspec

import (
	"encoding/json"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// Spec is everything that the files declare, after for_each. Instances of one block stand together, in the order of
// the file and, within a block, of their keys.
type Spec struct {
	Dir   string   // the project's directory, absolute
	Files []string // the files read, relative to Dir: the root file first, then the included ones, sorted
	Reads Reads    // everything that the evaluation read below Dir

	Absolute Absolute // the paths that abspath made

	Try *Try // the only candidate that is measured; nil: all that the files declare

	Mistakes  []Mistake  // of commits and candidates that are out
	Revisions []Revision // in expressions, with unknown commits

	Names []Name // of revisions, as the lock pins them

	Declared    []Address // the blocks, without keys of instances; a node has the name of its block
	Repos       []Repo
	Commits     []Commit
	Variants    []Variant
	Candidates  []Candidate
	Sources     []Source
	Wheels      []Wheel
	Images      []Image
	Fixes       []Fix
	Failures    []FailureRule
	Skips       []Skip
	KnownIssues []KnownIssue
	Fetches     []Fetch
	Mounts      []Mount
	Caches      []Cache
	Benchmarks  []Benchmark
	Compares    []Compare
	Reports     []Report
	Tasks       []Task
	Executors   []Executor
	Machines    []Machine
	Models      []Model
	Sandbox     string             // of blocks without the attribute; one of Sandboxes; empty: default of the system
	Store       *Store             // store that machines share; nil: none
	GPUHour     map[string]float64 // price of one hour of a device, by device name
}

// Reads lists the parts of the project's directory that an evaluation read: while they and the options stay the same,
// another evaluation gives the same Spec. Variable files may lie anywhere and are not listed.
type Reads = project.Reads

// Absolute finds paths in texts that abspath made.
type Absolute = project.Absolute

// Address names one node: kind.name or kind.name["key"].
type Address struct {
	Kind  string
	Name  string
	Key   string // meaningful only if Keyed
	Keyed bool
}

// Text is a string of the file. Each reference in it will become a path.
type Text []Part

// Part is one piece of a Text: a literal, or (when Ref is not the zero Address) the path of a node's output.
type Part struct {
	Literal string
	Ref     Address `json:",omitzero"`
}

// Command is a command of a block. Exactly one of Shell and Argv is set; the zero Command is none.
type Command struct {
	Shell Text      `json:",omitzero"` // run by sh -euc
	Argv  []Text    `json:",omitzero"` // run as it is
	Range hcl.Range `json:"-"`         // for mistakes in the file
}

// Block holds the fields that every instance has.
type Block struct {
	Address   Address
	Candidate string    `json:",omitzero"` // key of the candidate that the for_each key names; empty: none
	Range     hcl.Range // of the block's header in the file
	Out       *Out      `json:",omitzero"` // reason why the instance is not made; nil: it is made
}

// Repo is a source of code. Exactly one of URL and Path is set; Path may name a bundle file.
type Repo struct {
	Block
	URL  string
	Path string // as written; relative to the project's directory
}

// Commit is a commit under study.
type Commit struct {
	Block
	Name                  string
	Repo                  Address // zero: the commit has no code (its variants differ by configuration alone)
	Rev                   string  // 40 digits once the lock has them, else as written
	Parent                string  // written like Rev; default: Rev + "^"
	Title                 string
	Params                json.RawMessage // the params object as JSON
	RevRange, ParentRange hcl.Range
}

// Variant is a way in which every commit is measured.
type Variant struct {
	Block
	Name     string
	Baseline bool
	Optional bool
	Protect  []string // doublestar patterns of files that neither a patch nor the revision may change
	Copies   bool     // the baseline's copies of these files are used, instead of a refusal
}

// Candidate is one commit measured in one way.
type Candidate struct {
	Key      string // commit/variant
	Commit   string
	Variant  string
	Baseline bool
	Rev      string // revision that is checked out; empty if the commit has no code
	Patch    string // slash-separated path relative to Dir; empty: none
	// of an optional patch that is missing: the reason, and the path if there is no such file; empty: none is missing
	NoPatch, NoFile      string
	Source               Address   // source.<repo>["commit/variant"]; zero when the commit has no code
	Range                hcl.Range // of the commit's block
	RevRange, PatchRange hcl.Range // of the variant's attributes
	Out                  *Out      // the mistake of the commit or of the candidate that takes it out; nil: none
}

// Source is one tree: a revision, perhaps with a patch. There is one for every candidate, and one for every client
// revision, with the first 12 characters of the revision as key.
type Source struct {
	Block
	Repo    Address
	Rev     string
	Patch   string   // as in Candidate
	Protect []string // as in Variant
	Copies  bool     // as in Variant
	// with Protect: the revision of the commit's baseline, whose files are the protected ones
	Against  string
	RevRange hcl.Range
}

// Limits bounds the resources of a node. A zero value is not declared.
type Limits struct {
	CPUs     int           `json:",omitzero"`
	Memory   int64         `json:",omitzero"` // bytes
	Disk     int64         `json:",omitzero"` // bytes of disk for its working directory
	Timeout  time.Duration `json:",omitzero"`
	Estimate time.Duration `json:",omitzero"` // of one run, for forecasts and the schedule, until one was measured
}

// Work is a command of a build, a task or a benchmark, with its environment.
type Work struct {
	Image   Address `json:",omitzero"` // zero: on the host
	Command Command
	Env     map[string]Text `json:",omitzero"`
	Secrets []string        `json:",omitzero"`
	Mounts  []Address       `json:",omitzero"`
	Fixes   []Address       `json:",omitzero"`
	// the commands may use the network; on the host, only a sandbox prevents it
	Network bool   `json:",omitzero"`
	Sandbox string `json:",omitzero"` // one of Sandboxes; empty: Spec.Sandbox
	Limits
}

// Build is the recipe of a build.
type Build struct {
	Work
	Inputs []string // files of the project that are laid into the tree, by their paths in the project
}

// Wheel is something that is built once from a source tree.
type Wheel struct {
	Block
	Source   Address // zero: built from nothing but its inputs
	Prebuilt []string
	Overlay  []string  // doublestar patterns
	Nearest  int       // distance in commits of the ancestors whose prebuilt wheels may serve; 0: none
	Build    *Build    // nil: prebuilt only
	Outputs  []string  // doublestar patterns; at least one file must match each
	Fixes    []Address // fixes that may be applied to the tree before the build (on the host)

	// PrebuiltOf evaluates prebuilt for another revision, 40 digits, in the place of the candidate's own. It is nil
	// unless Nearest is positive. It is not safe for concurrent use.
	PrebuiltOf func(rev string) []string `json:"-"`
}

// Image is a container image. Exactly one of From, Base and Build is set.
type Image struct {
	Block
	From                 string      // name of an image in a registry, or of one that the engine has
	Base                 Address     // another image, or a task or fetch that makes the tar of a root file system
	Build                *ImageBuild // nil: nothing is built
	Install              []Address
	Overlay              *ImageOverlay // nil: none
	Fixes                []Address
	Verify               Command
	Network              bool // commands that make it may use the network
	Push                 string
	FromRange, PushRange hcl.Range
}

// ImageOverlay lays files of a source tree over a package that an image has.
type ImageOverlay struct {
	Source Address
	Over   Address  // the source tree that the package was made from
	Paths  []string // doublestar patterns
}

// ImageBuild is a build of an image from a Dockerfile.
type ImageBuild struct {
	Context    string // directory, slash-separated, relative to the project's directory
	Dockerfile string // slash-separated, relative to Context
	Args       map[string]string
	Target     string // stage; empty: the last
	Range      hcl.Range
}

// Fix is a recipe that makes something broken run.
type Fix struct {
	Block       // Candidate is empty; Cases has an entry per candidate
	Description string
	Detect      string // RE2; empty: never learnt
	Patches     bool   // a failure that only a patch causes teaches it, too
	InImage     bool   // it can be applied in images only
	Effect      string // neutral, perf or unknown
	Caveat      string
	After       []Address
	// by candidate key, or by the address of a block without a candidate; "" if all cases are the same
	Cases map[string]FixCase
}

// Case returns the fix as evaluated for a block: for its candidate, or for its address if it has none. It returns false
// if the fix uses each and was not evaluated for the block.
func (f *Fix) Case(block Address, candidate string) (FixCase, bool) {
	for _, key := range [...]string{candidate, block.String(), ""} {
		if c, ok := f.Cases[key]; ok {
			return c, true
		}
	}
	return FixCase{}, false
}

// FixCase is a fix as evaluated for one candidate, since when, run and file may use each.
type FixCase struct {
	When   bool // the fix applies by its condition
	Run    []Text
	Verify Command
	Files  []FixFile
	Env    map[string]Text
	Pip    []string
}

// FixFile is one file that a fix puts in place.
type FixFile struct {
	From    Text // a path; one of From and Content is set
	Content string
	To      Text // may begin with $SITE
}

// FailureRule is a rule that the file declares.
type FailureRule struct {
	Block
	failure.Rule
}

// Skip is a declared exclusion that holds.
type Skip struct {
	Block
	Reason string
}

// KnownIssue is a condition under which something is known to be broken.
type KnownIssue struct {
	Block
	Probe   Command // zero: When alone decides
	Sandbox string  // as in Benchmark
	Reason  string
}

// Fetch is a download.
type Fetch struct {
	Block
	URL      string
	SHA256   string // as declared, else as locked, else empty
	MaxSize  int64  // bytes
	URLRange hcl.Range
}

// Benchmark is one instance of a benchmark block: the commands to run and the metrics to read.
type Benchmark struct {
	Block
	Work
	Data    []Data
	GPUs    *GPUs
	Server  *Server
	Canary  *Canary
	Check   *Check
	Caches  []Address
	Fill    Command // command that fills the caches; by default Command
	Client  Address // the source whose tree the commands run in; zero: an empty directory
	Quiet   bool
	Design  Design
	Metrics Metrics
	// name of the executor whose machine measures, or Local; empty: the requirements of the benchmark decide
	Executor      string
	ExecutorRange hcl.Range
}

// Data lays the output of a node into the working directory under a name: the one file of the output, or the whole of
// it as a directory.
type Data struct {
	Name string
	Ref  Address
	Tree bool // the name was written with a slash at its end: a directory
}

// GPUs describes the devices that a benchmark needs.
type GPUs struct {
	Count        int
	Memory       int64  // bytes a device
	Model        string // RE2 on the device name; empty: any
	SMClock      int    // MHz at which the clock is locked; 0: it is not locked
	SMClockRange hcl.Range
}

// Server is the process that a benchmark's command talks to.
type Server struct {
	Command Command
	Env     map[string]Text
	HTTP    string // path; exactly one of HTTP, Log and TCP is set
	Log     string // RE2
	TCP     bool
	Timeout time.Duration // until it is ready

	ShmSize int64            // bytes of /dev/shm of its container; 0: half of the memory
	Ulimits map[string]int64 // of its container, by name; -1: none

	Devices      []string // paths of devices of the host for its container, beside GPUs
	Capabilities []string // of its container, without CAP_
}

// Canary is a workload of known speed. It runs before each member of a block and after the last one: a change of its
// speed is a change of the machine.
type Canary struct {
	Command   Command
	Metric    Metric        // place of its number
	Tolerance float64       // largest relative difference between two of its numbers
	Timeout   time.Duration // for each run
	Range     hcl.Range
}

// Design is the number and arrangement of blocks and runs.
type Design struct {
	Samples int // blocks before the first look
	Max     int // blocks at most; equal to Samples if the number is fixed
	BurnIn  int // blocks before all others, which are measured and not judged
	// ascending numbers of blocks at which contrasts are judged, from Samples to Max; empty: stats.Looks chooses them
	Looks   []int
	Spread  bool   // blocks take turns with those of other commits
	Pairing string // blocked or independent
	Warmup  int    // runs of the command in every lifecycle whose output is not read
	Repeat  int    // runs of the command whose mean is the sample; 0 counts as 1
	Seed    int64  // of the random orders; 0: derived from the content
}

// Passes returns the number of runs of the measured command for one sample, at least 1.
func (d Design) Passes() int { return max(1, d.Repeat) }

// Metrics describes the numbers that are read from the output.
type Metrics struct {
	Format         string // one of Formats
	Primary        string
	File           string // read this file of $OUT instead of the command's standard output
	Custom         []Metric
	TokenTolerance float64 // largest relative difference of total tokens; 0: the default of 0.5 %
	Require        []Required
}

// Metric is a custom metric: one number that a benchmark prints.
type Metric struct {
	Name   string
	Match  string // RE2 whose first group is the value; one of Match and JSON is set
	JSON   string // path into a JSON document
	File   string // in $OUT; empty: standard output
	Unit   string
	Better string  // higher or lower; empty: by the metric's name
	Tie    float64 // 0: the compare's
}

// Compare judges candidates against their baselines.
type Compare struct {
	Block
	Of         []Address // benchmark instances
	Tie        float64   // relative; 0: the defaults (2 %; 5 % for TTFT and any p99)
	Confidence float64
	Metrics    []string // beside the primary; empty: all
}

// Report is a report of compares.
type Report struct {
	Block
	Of      []Address // compares
	Formats []string
	Dir     string // slash-separated, relative to the project's directory

	Recorded []string // results of other studies, each text as JSON lines
}

// Task is any other work, like a rule in a Makefile.
type Task struct {
	Block
	Work
	Inputs  []string  // files below the project's directory, slash-separated, sorted: the globs expanded
	Data    []Data    `json:",omitzero"`
	Source  Address   `json:",omitzero"`
	Needs   []Address `json:",omitzero"`
	Outputs []string  `json:",omitzero"`
	Quiet   bool      `json:",omitzero"`
	// Artefact: the result is measured, so that it may differ between variants as a wheel does.
	Artefact bool `json:",omitzero"`
}

// Model is the published properties of a model. It extends or corrects the built-in table.
type Model struct {
	Block
	Missing      bool    // there is no model of this name
	Parameters   float64 // number, with those of all experts
	Weights      float64 // bytes of the files that are loaded; 0: two per parameter
	Quantization string  // of those files; empty: none
	Architecture string  // class name
	MaxLength    int     // tokens
	Cache        float64 // bytes of keys and values for one token at 16 bits; 0: not known
	Gated        bool
	Rope         string // scaling of positions that the engine must support
}

// Machine is another machine that can be planned for.
type Machine struct {
	Block
	Devices      string // path of the file that describes the machine, below the project's directory
	DevicesRange hcl.Range
	Document     []byte // the content of that file
}

// Local is the Executor of a benchmark that is measured on the machine of the project.
const Local = "local"

// Executor runs nodes on other machines. Its name is TYPE or TYPE-NAME.
type Executor struct {
	Block
	Machine    string               // name of the machine block that describes its machines; empty: none
	Settings   json.RawMessage      // the other attributes
	Attributes map[string]hcl.Range // places of the attributes that are not null
}
