package tasks

import (
	"context"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/clocks"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/image/room"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/git"
)

// Services are used by tasks while they run. All graphs of a process share them.
type Services struct {
	Config
	Asker    *download.Asker           // asks hosts for facts that a plan needs
	shells   shell.Config              // settings of the shells in which nodes run commands
	Room     *room.Room                // space for images on the disk of the container engine
	Maker    *image.Maker              // makes images
	Lacks    map[bool]engine.Condition // why there is no container engine, or (true) no engine with devices
	grants   sync.Map                  // by grants of servers: why no engine has them
	canaries sample.Canaries           // numbers of canaries from blocks that count
	mirrors  mirrors
}

// mirrors are the open mirrors of repos, by name.
type mirrors struct {
	mu   sync.Mutex
	open map[string]*git.Mirror
}

func newServices(c Config) *Services {
	s := &Services{Config: c, mirrors: mirrors{open: map[string]*git.Mirror{}}}
	s.Asker = download.NewAsker(download.AskOptions{
		Client: c.HTTP, Keep: filepath.Join(c.StateDir, "answers"), Offline: c.Offline, Progress: c.Progress,
	})
	s.Lacks = map[bool]engine.Condition{false: s.askEngine("", nil),
		true: s.askEngine("devices in containers", docker.CheckGPUs)}
	s.Room = room.New(c.Engine, c.ImageDisk, filepath.Join(c.StateDir, "images"), c.ImageLocks)
	return s
}

// Facts are found out before a graph is made, by evaluation and resolution. They are immutable then, except for caches
// of things read once, such as files of the project.
type Facts struct {
	*Services
	Spec *hclspec.Spec
	Lock *lockfile.Lock

	Hardware   string                  // class of this machine, as samples record it
	As         *Class                  // another class for which the project is planned; nil: this machine's
	wheels     *wheelLookup            // cache of facts about the wheels
	Trees      map[string]string       // by commit: its tree
	Unresolved map[string]UnknownImage // by name of an image: why its digest is unknown
	machines   []Elsewhere             // machine blocks of the file; nil: not read yet
	Lost       map[string]string       // by commit: why its tree cannot be had, and the remedy
	Refused    Refusals                // candidates and benchmarks that failed checks of the plan
	// merges nodes that were made again into the nodes of an earlier plan; nil: all nodes are made again
	Standing func(anew []*engine.Node) ([]*engine.Node, error)
	Seen     Seen

	places ofSpec[map[blocksAt]*Elsewhere] // nil value: this machine
	revs   ofSpec[map[string]string]       // by name of a commit, see revOf
}

// ofSpec is a value that is computed from a spec on first use.
type ofSpec[T any] struct {
	spec *hclspec.Spec
	made T
}

func (o *ofSpec[T]) get(spec *hclspec.Spec, make func() T) T {
	if o.spec != spec {
		o.spec, o.made = spec, make()
	}
	return o.made
}

// Seen caches the files of the project, each as it was when it was first read.
type Seen struct {
	Known    map[string]File          // files that tasks read
	Words    map[string]bool          // words of commands: whether the project has a file of that name
	FixFiles map[string]bool          // names of files that fixes put in place
	Patches  map[string]string        // by path: SHA-256
	texts    map[string][]byte        // patches, by path
	Builds   map[string]image.Context // by BuildID: inputs of an image build
	models   map[string]*regexp.Regexp
}

// NewFacts returns the facts of a project with only the spec and the lock. A nil spec is not evaluated yet.
func NewFacts(c Config, spec *hclspec.Spec, lock *lockfile.Lock) *Facts {
	s := newServices(c)
	f := &Facts{Services: s, Spec: spec, Lock: lock, wheels: &wheelLookup{}, Seen: Seen{
		Known: map[string]File{}, Words: map[string]bool{}, FixFiles: map[string]bool{}, Patches: map[string]string{},
		texts:  map[string][]byte{},
		Builds: map[string]image.Context{}, models: map[string]*regexp.Regexp{},
	}}
	s.shells = shell.Config{
		Host: s.Host, Containers: s.Containers, Engine: s.Engine, HTTP: s.HTTP, Environ: s.Environ, Secret: s.Secret,
		Rules: sync.OnceValues(func() (diagnosis.Rules, error) { return diagnosis.NewRules(f.Spec.Failures, c.Named) }),
	}
	s.Maker = &image.Maker{Shells: s.shells, Room: s.Room, Offline: s.Offline}
	return f
}

// On returns a copy of the facts for a machine of another class; nil: of this machine's.
func (p *Facts) On(c *Class) *Facts {
	other := *p
	other.As = c
	return &other
}

// Choice is the part of a graph's input that changes between the rounds of a plan. A worker on another machine needs
// only the files and this choice, as JSON.
type Choice struct {
	// by group: number of blocks
	Blocks map[string]int `json:"blocks"`
	// by group: names of the only members to measure, each in blocks of its own; nil: all members, in shared blocks
	Alone map[string]map[string]bool `json:"alone"`
	// by benchmark: why it takes no part in its group's blocks
	Dropped map[string]Absence `json:"dropped"`
	// by benchmark: the failure for which it was dropped; in no key
	Causes map[string]Cause `json:"-"`
	// by benchmark: a known issue that was found after it was measured
	Issues map[string]Absence `json:"issues"`
	// by task: why its inputs cannot be laid out as the task asks
	Misfits map[string]string `json:"misfits"`
}

// NewChoice returns the choice of the first round: the declared number of blocks, with all members.
func NewChoice() Choice {
	return Choice{
		Blocks: map[string]int{}, Dropped: map[string]Absence{}, Causes: map[string]Cause{},
		Issues: map[string]Absence{}, Misfits: map[string]string{},
	}
}

// clone returns a copy that is independent of later rounds.
func (c Choice) clone() Choice {
	return Choice{
		maps.Clone(c.Blocks), c.Alone, maps.Clone(c.Dropped), maps.Clone(c.Causes), maps.Clone(c.Issues),
		maps.Clone(c.Misfits),
	}
}

// Remeasure resets the number of blocks and the dropped members, for another lock or another machine.
func (c *Choice) Remeasure() {
	c.Blocks, c.Dropped = map[string]int{}, map[string]Absence{}
}

// A Drawing is a graph as nodes, rounds and the judge read it: its facts, its choice, and the product of each block of
// the file. Nodes refer to the drawing in which they were made.
type Drawing struct {
	*Facts
	Choice
	candidates map[string]*hclspec.Candidate // by key
	rank       map[string]int                // position of each candidate in the file
	Groups     []*Group
	Of         map[hclspec.Address]map[hclspec.Address]bool // by compare: its benchmarks
	Excluded   map[string]Absence                           // by candidate
	// by candidate: nodes that must pass first, such as probes of known issues, or a source with protected files
	Probes map[string][]hclspec.Address
	// by candidate: patterns of the files that are replaced with the baseline's copies
	copies    map[string][]string
	artefacts map[hclspec.Address]bool // tasks whose results are measured
	fixes     map[hclspec.Address]*hclspec.Fix
	unlisted  []hclspec.Address // fixes that no block lists
	// For the room for images; nil: the file has no images.
	Parts   map[string][]room.Part      // by image: its parts on the disk
	Spans   map[*engine.Span][]string   // addresses of images that are used together
	Lacking map[string]engine.Condition // by address: of this machine, for nodes that are planned for another one
	Jobs    []*engine.Node              // nodes that executors run

	// From the plan of the graph:

	// by address of a task or download of one candidate: its key, where variants of the commit have different ones
	Work map[string]string
	// by address: a machine of the file that is large enough for a node for which this one is too small
	machineOf map[string]string
}

// Cause is the failed attempt for which a member was dropped from its blocks.
type Cause struct {
	Address string
	Attempt journal.Attempt
}

// Refusals are the candidates that failed a check, and the benchmarks that did where their candidate has others.
type Refusals struct {
	Candidates map[string]Absence // by key
	Benchmarks map[string]Absence // by address
	Unguarded  map[string]bool    // candidates whose protect matches nothing
}

// Store is the part of the store that a project uses.
type Store interface {
	cache.Store
	Recognizer
	List(ctx context.Context, wanted func(address string) bool, f func(cache.Meta) error) error
	Scratch() (string, error)
}

// Recognizer reports whether results are as a remembered plan saw them.
type Recognizer interface {
	Outline(m *cache.Meta) cache.Outline
	Intact(o *cache.Outline, use bool) bool
	Absent(keys, contents []cache.Key) bool
}

// Config is the environment of tasks and of the code that finds out facts. All of it comes from main; nothing else
// reads environment variables.
type Config struct {
	StateDir   string   // absolute path; holds mirrors and logs
	StoreDir   string   // absolute path of the store, which must not be mounted
	Hidden     []string // absolute paths of further directories and files that sandboxed commands must not see
	Named      []string // absolute paths; if one is missing here, it explains failures of commands that name it
	Store      Store
	Journal    *journal.Journal
	Stat       *cache.StatCache
	Host       executor.Executor
	Containers executor.Executor // for commands in containers; nil: nothing can run in one
	Engine     *container.Engine // engine with the images and these containers; nil: none
	// directory of locks with which the applies of one user leave each other's images alone; empty: no locks
	ImageLocks string
	// bytes of the engine's disk for images of benchgraph; 0: the whole disk
	ImageDisk int64
	Pool      device.Pool
	Elsewhere *Elsewhere   // the machine for which all nodes are planned; nil: this one and Reached
	Reached   []*Elsewhere // machines of the file's executors, in the file's order; see PlaceOf
	// data from which a worker makes the same graph
	Drawn      func(context.Context, *Drawing) (remote.Drawn, error)
	Home       string         // absolute path of the project of which Spec.Dir is a copy; empty: it is no copy
	GPUs       *gpu.Driver    // watches devices while samples are taken; nil: no watch
	Clocks     *clocks.Locker // locks the clocks of devices; nil: no locks
	HTTP       *http.Client   // for downloads
	Sandbox    string         // sandbox setting of the command line; empty: the file decides
	Environ    []string       // PATH, HOME and LANG for commands, as NAME=value
	GitEnviron []string       // the whole environment, only for git: proxies, certificates, ssh
	Secret     func(name string) (value string, ok bool)
	Render     Renderer
	Offline    bool      // reach no network
	Allow      []string  // methodology fields that may differ; figures that rest on this are labelled
	Progress   io.Writer // receives plain lines about slow preparations
	LockFile   string    // absolute path
}

// Renderer renders the findings of a report node as files, by name.
type Renderer func(found []findings.Findings, spec *hclspec.Spec, r *hclspec.Report) (map[string][]byte, error)

// LostDeviceRemedy is the remedy for failures with the rule [engine.DeviceLost].
const LostDeviceRemedy = "have the device reset or replaced (nvidia-smi and the kernel's log say more), and apply again"
