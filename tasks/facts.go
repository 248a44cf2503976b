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

// Services are what tasks use while they run. They are the same for all graphs of a process.
type Services struct {
	Config
	Asker    *download.Asker        // asks hosts for what a plan must know
	shells   shell.Config           // by which nodes run commands
	Room     *room.Room             // space for images on the disk of the container engine
	Maker    *image.Maker           // of images
	Lacks    map[bool]func() string // why there is no container engine, or (true) none that gives devices
	grants   sync.Map               // likewise none that gives what servers ask for, by that
	canaries sample.Canaries        // of blocks that count
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
	s.Lacks = map[bool]func() string{false: s.askEngine("", nil),
		true: s.askEngine("devices in containers", executor.CheckGPUs)}
	s.Room = room.New(c.Engine, c.ImageDisk, filepath.Join(c.StateDir, "images"), c.ImageLocks)
	return s
}

// Facts are what is found out before a graph is made. Evaluation and resolution fill them in; from then on, nothing
// changes them but what is read for the first time and kept: a file of the project, say.
type Facts struct {
	*Services
	Spec *hclspec.Spec
	Lock *lockfile.Lock

	Hardware   string                  // class of this machine, as samples record it
	As         *Class                  // another class, as on whose machine the project is planned; nil: this machine's
	wheels     *wheelLookup            // what is known of the wheels of the file
	Trees      map[string]string       // by commit: its tree
	Unresolved map[string]UnknownImage // by name of an image: why nobody knows which one it is
	machines   []Elsewhere             // of the file; nil: not read yet
	Lost       map[string]string       // by commit: why its tree cannot be had, and what helps
	Refused    Refusals                // candidates and benchmarks that findings take out
	// puts the nodes that are made anew among those that stand as an earlier plan left them; nil: all are made anew
	Standing func(anew []*engine.Node) ([]*engine.Node, error)
	Seen     Seen

	places ofSpec[map[blocksAt]*Elsewhere] // nil: this machine
	revs   ofSpec[map[string]string]       // by name of a commit, see revOf
}

// ofSpec is something that is made of a spec when it is asked for first.
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

// Seen is what was read of the project's files, each as it was when it was read first.
type Seen struct {
	Known    map[string]File          // files that tasks read
	Words    map[string]bool          // words of commands: whether the project had a file of that name
	FixFiles map[string]bool          // names of the files that fixes put in place
	Patches  map[string]string        // by path: SHA-256
	texts    map[string][]byte        // of patches, by path
	Builds   map[string]image.Context // by BuildID: what an image is built from
	models   map[string]*regexp.Regexp
}

// NewFacts returns facts of a project of which nothing is found out but the spec and the lock. spec is nil where the
// files are not evaluated yet.
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

// On returns the facts as on a machine of another class; nil: of this machine's.
func (p *Facts) On(c *Class) *Facts {
	other := *p
	other.As = c
	return &other
}

// Choice is what changes between the rounds of a plan. As JSON, it is all that a worker on another machine needs beside
// the files.
type Choice struct {
	// by group: how many blocks are asked for
	Blocks map[string]int `json:"blocks"`
	// by group: the members that are measured by themselves, by name; nil: none is
	Alone map[string]map[string]bool `json:"alone"`
	// by benchmark: why it is no member of its group's blocks
	Dropped map[string]Absence `json:"dropped"`
	// by benchmark: the failure for which it was dropped; in no key
	Causes map[string]Cause `json:"-"`
	// by benchmark: the known issue that was found after it was measured
	Issues map[string]Absence `json:"issues"`
	// by task: why what is stored cannot be laid out as the task asks for it
	Misfits map[string]string `json:"misfits"`
}

// NewChoice returns the choice of a first round: the blocks that the file asks for, of all members.
func NewChoice() Choice {
	return Choice{
		Blocks: map[string]int{}, Dropped: map[string]Absence{}, Causes: map[string]Cause{},
		Issues: map[string]Absence{}, Misfits: map[string]string{},
	}
}

// clone returns a copy that further rounds do not change.
func (c Choice) clone() Choice {
	return Choice{
		maps.Clone(c.Blocks), c.Alone, maps.Clone(c.Dropped), maps.Clone(c.Causes), maps.Clone(c.Issues),
		maps.Clone(c.Misfits),
	}
}

// Remeasure asks for the first blocks of every group again, of all members: another lock, or another machine.
func (c *Choice) Remeasure() {
	c.Blocks, c.Dropped = map[string]int{}, map[string]Absence{}
}

// A Drawing is a graph as its nodes, the rounds and the judge read it: the facts and the choice that the graph was made
// from, and what each part of the file became. Nodes refer to the drawing in which they were made.
type Drawing struct {
	*Facts
	Choice
	candidates map[string]*hclspec.Candidate // by key
	rank       map[string]int                // place of each candidate in the file
	Groups     []*Group
	Of         map[hclspec.Address]map[hclspec.Address]bool // by compare: its benchmarks
	Excluded   map[string]Absence                           // by candidate
	// what must hold of a candidate: known issues, its tree where files are protected
	Probes map[string][]hclspec.Address
	// by candidate: patterns of the files that the baseline's copies replace
	copies    map[string][]string
	artefacts map[hclspec.Address]bool // tasks whose results are measured
	fixes     map[hclspec.Address]*hclspec.Fix
	unlisted  []hclspec.Address // fixes that no block lists
	// What the room for images has to expect; nil: the file has no images.
	Parts   map[string][]room.Part    // by image: what it is made from
	Spans   map[*engine.Span][]string // images that are used together, by address
	Lacking map[string]func() string  // by address: what this machine lacks for a node of a plan for another one
	Jobs    []*engine.Node            // that executors run

	// What the plan of the graph found out:

	// by address of a task or download of one candidate: its key, where that of another variant differs
	Work map[string]string
	// by address: the machine of the file that can run a node for which this one is too small
	machineOf map[string]string
}

// Cause is the failed attempt for which a member takes no part in its blocks.
type Cause struct {
	Address string
	Attempt journal.Attempt
}

// Refusals are what fails a check: candidates, and benchmarks of candidates of which others can be measured.
type Refusals struct {
	Candidates map[string]Absence // by key
	Benchmarks map[string]Absence // by address
}

// Store is what a project needs of the store.
type Store interface {
	cache.Store
	Recognizer
	List(ctx context.Context, wanted func(address string) bool, f func(cache.Meta) error) error
	Scratch() (string, error)
}

// Recognizer tells whether results are as a remembered plan saw them.
type Recognizer interface {
	Outline(m *cache.Meta) cache.Outline
	Intact(o *cache.Outline, use bool) bool
	Absent(keys, contents []cache.Key) bool
}

// Config is what tasks work with, and what finds out facts. All of it comes from main; nothing else is read from the
// environment.
type Config struct {
	StateDir   string   // absolute; holds mirrors and logs
	StoreDir   string   // absolute; of the store: nothing of it is mounted
	Hidden     []string // absolute: what else commands in a sandbox must not see
	Named      []string // absolute: what a failure of a command is put down to where it is missing here
	Store      Store
	Journal    *journal.Journal
	Stat       *cache.StatCache
	Host       executor.Executor
	Containers executor.Executor // for commands in containers; nil: nothing can run in one
	Engine     *container.Engine // where the images and those containers are; nil: none
	// directory by which the applies of one user leave each other's images alone; empty: they do not
	ImageLocks string
	// bytes of the engine's disk that images of benchgraph's may take; 0: as many as it has
	ImageDisk int64
	Pool      device.Pool
	Elsewhere *Elsewhere   // the machine that everything is planned for; nil: this one, and those of Reached
	Reached   []*Elsewhere // machines that executors of the file reach, in its order, see PlaceOf
	// what a worker draws a graph from again
	Drawn      func(context.Context, *Drawing) (remote.Drawn, error)
	Home       string         // absolute: the directory that the project's is a copy of; empty: it is none
	GPUs       *gpu.Driver    // by which samples are watched; nil: they are not
	Clocks     *clocks.Locker // of its devices; nil: they are not locked
	HTTP       *http.Client   // for downloads
	Sandbox    string         // for blocks that say nothing, before what the file says; empty: that
	Environ    []string       // PATH, HOME and LANG for commands, as NAME=value
	GitEnviron []string       // the whole environment, for git alone: it takes proxies, certificates and ssh from it
	Secret     func(name string) (value string, ok bool)
	Render     Renderer
	Offline    bool      // reach no network
	Allow      []string  // methodology fields that may differ; every figure that this lets through is labelled
	Progress   io.Writer // tells of slow preparations, in plain lines
	LockFile   string    // absolute path
}

// Renderer renders what a report node found, as files by name.
type Renderer func(found []findings.Findings, spec *hclspec.Spec, r *hclspec.Report) (map[string][]byte, error)

// LostDeviceRemedy is the remedy for failures with the rule [engine.DeviceLost].
const LostDeviceRemedy = "have the device reset or replaced (nvidia-smi and the kernel's log say more), and apply again"
