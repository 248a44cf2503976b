package tasks

import (
	"maps"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/image/room"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/git"
)

// services are what tasks use while they run. They are the same for all graphs of a process.
type services struct {
	Config
	asker    *download.Asker        // asks hosts for what a plan must know
	shells   shell.Config           // by which nodes run commands
	room     *room.Room             // space for images on the disk of the container engine
	maker    *image.Maker           // of images
	lacks    map[bool]func() string // why there is no container engine, or (true) none that gives devices
	canaries canaries               // of blocks that count
	mirrors  mirrors
}

// mirrors are the open mirrors of repos, by name.
type mirrors struct {
	mu   sync.Mutex
	open map[string]*git.Mirror
}

func newServices(c Config) *services {
	s := &services{Config: c, mirrors: mirrors{open: map[string]*git.Mirror{}}}
	s.asker = download.NewAsker(download.AskOptions{
		Client: c.HTTP, Keep: filepath.Join(c.StateDir, "answers"), Offline: c.Offline, Progress: c.Progress,
	})
	s.lacks = map[bool]func() string{false: s.askEngine(false), true: s.askEngine(true)}
	s.room = room.New(c.Engine, c.ImageDisk, filepath.Join(c.StateDir, "images"), c.ImageLocks)
	return s
}

// facts are what is found out before a graph is made. Evaluation and resolution fill them in; from then on, nothing
// changes them but what is read for the first time and kept: a file of the project, say.
type facts struct {
	*services
	Spec *hclspec.Spec
	Lock *hclspec.Lock

	hardware   string                  // class of this machine, as samples record it
	as         *machineClass           // another class, as on whose machine the project is planned; nil: this machine's
	wheels     *wheelLookup            // what is known of the wheels of the file
	trees      map[string]string       // by commit: its tree
	unresolved map[string]unknownImage // by name of an image: why nobody knows which one it is
	machines   []Elsewhere             // of the file; nil: not read yet
	findings   []preflight.Finding     // of the preflight
	refused    refusals                // candidates and benchmarks that findings take out
	// an earlier plan, of which only what has changed is made again; nil: the whole graph is
	recalled *recalled
	seen     seen
}

// seen is what was read of the project's files, each as it was when it was read first.
type seen struct {
	known    map[string]file          // files that tasks read
	words    map[string]bool          // words of commands: whether the project had a file of that name
	fixFiles map[string]bool          // names of the files that fixes put in place
	patches  map[string]string        // by path: SHA-256
	builds   map[string]image.Context // by buildID: what an image is built from
	models   map[string]*regexp.Regexp
}

func newFacts(s *services, spec *hclspec.Spec, lock *hclspec.Lock) *facts {
	f := &facts{services: s, Spec: spec, Lock: lock, wheels: &wheelLookup{}, seen: seen{
		known: map[string]file{}, words: map[string]bool{}, fixFiles: map[string]bool{}, patches: map[string]string{},
		builds: map[string]image.Context{}, models: map[string]*regexp.Regexp{},
	}}
	s.shells = shell.Config{
		Host: s.Host, Containers: s.Containers, Engine: s.Engine, HTTP: s.HTTP, Environ: s.Environ, Secret: s.Secret,
		Rules: sync.OnceValues(func() (shell.Rules, error) { return shell.NewRules(f.Spec.Failures) }),
	}
	s.maker = &image.Maker{Shells: s.shells, Room: s.room, Offline: s.Offline}
	return f
}

// on returns the facts as on a machine of another class; nil: of this machine's.
func (p *facts) on(c *machineClass) *facts {
	other := *p
	other.as = c
	return &other
}

// choice is what changes between the rounds of a plan.
type choice struct {
	blocks  map[string]int             // by group: how many blocks are asked for
	alone   map[string]map[string]bool // by group: the members that are measured by themselves, by name; nil: none is
	dropped map[string]absence         // by benchmark: why it is no member of its group's blocks
	causes  map[string]cause           // by benchmark: the failure for which it was dropped
	issues  map[string]absence         // by benchmark: the known issue that was found after it was measured
	misfits map[string]string          // by task: why what is stored cannot be laid out as the task asks for it
}

func newChoice() choice {
	return choice{
		blocks: map[string]int{}, dropped: map[string]absence{}, causes: map[string]cause{},
		issues: map[string]absence{}, misfits: map[string]string{},
	}
}

// clone returns a copy that further rounds do not change.
func (c choice) clone() choice {
	return choice{
		maps.Clone(c.blocks), c.alone, maps.Clone(c.dropped), maps.Clone(c.causes), maps.Clone(c.issues),
		maps.Clone(c.misfits),
	}
}

// remeasure asks for the first blocks of every group again, of all members: another lock, or another machine.
func (c *choice) remeasure() {
	c.blocks, c.dropped = map[string]int{}, map[string]absence{}
}

// A drawing is a graph as the rest of the package reads it: the facts and the choice that the graph was made from, and
// what each part of the file became. Nodes refer to the drawing in which they were made.
type drawing struct {
	*facts
	choice
	candidates map[string]*hclspec.Candidate // by key
	rank       map[string]int                // place of each candidate in the file
	groups     []*group
	of         map[hclspec.Address]map[hclspec.Address]bool // by compare: its benchmarks
	excluded   map[string]absence                           // by candidate
	// what must hold of a candidate: known issues, its tree where files are protected
	probes map[string][]hclspec.Address
	// by candidate: patterns of the files that the baseline's copies replace
	copies    map[string][]string
	artefacts map[hclspec.Address]bool // tasks whose results are measured
	fixes     map[hclspec.Address]*hclspec.Fix
	unlisted  []hclspec.Address        // fixes that no block lists
	lacking   map[string]func() string // by address: what this machine lacks for a node of a plan for another one

	// What the plan of the graph found out:

	// by address of a task or download of one candidate: its key, where that of another variant differs
	work map[string]string
	// by address: the machine of the file that can run a node for which this one is too small
	machineOf map[string]string
}
