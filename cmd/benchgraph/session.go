package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/campaign/memo"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/containers"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/apptainer"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/tasks"
)

// session is a project with its state, as most commands need it.
type session struct {
	*app
	place
	store     *shared.Store
	journal   *journal.Journal
	stat      *cache.StatCache
	pool      *device.LocalPool
	host      *executor.Host
	apptainer *apptainer.Engine // used instead of Docker; nil: Docker is used, or there is neither
	gpus      *gpu.Driver
	toldOdd   sync.Once
	cpus      int
	imageDisk int64                // bytes of the container engine's disk that images may take; 0: all
	files     map[string]*hcl.File // of the last evaluation, for diagnostics
	project   *campaign.Project
	machine   string              // access.machine
	pools     []*device.LocalPool // of other machines
	warnings  hcl.Diagnostics     // about the files, and about things that their commands will lack

	past     *history.Cache // answers to expressions about repos
	lockText []byte         // of the lock file, when it was last read or written
}

// access says what a command may use, and what it needs.
type access struct {
	about   []string // the nodes that the command is about, as typed; none: all
	offline bool
	look    *shared.Look // read the shared store, even offline, and put nothing there; nil: use it only online
	locked  bool
	upgrade bool // look the names of revisions up again
	allow   []string
	// the machine to plan for: a name in the file, or the path of a machine file; empty: this machine
	machine string
	recall  recall
	// makes a candidate that no file declares; nil: there is none
	try func(context.Context, *session, *hclspec.Spec) (*hclspec.Try, error)
	// makes the spec that is planned from the one that the files declare; nil: the latter is planned
	derive func(*hclspec.Spec) (*hclspec.Spec, error)
	aside  *remote.Aside // the candidates of derive, for workers; nil: workers need not know them
	// indices or UUIDs of the GPUs that may be used; empty: all visible ones
	devices string
	// outlives the session, which does not save it; nil: the session opens that of the state
	stat    *cache.StatCache
	sandbox string     // for blocks that do not say; empty: as in the file
	job     *workerJob // that this process serves as a worker; nil: it is no worker
	// the command depends on no device, so the driver, which may hang, is left alone
	deviceless bool
}

// recall says when a command can use the remembered plan instead of evaluating the files.
type recall int

const (
	recallNothing recall = iota // never: the command needs the whole spec
	recallNodes                 // if the project has no compares and reports, which the remembered plan does not hold
	recallAll                   // always: the command needs no compares and reports
)

// open reads the project and opens its state. The caller must close the session.
func (a *app) open(ctx context.Context, o access) (*session, error) {
	p, err := a.place()
	if err != nil {
		return nil, err
	}
	if o.machine != "" || o.upgrade {
		o.recall = recallNothing // the remembered plan is for this machine
	}
	s := &session{app: a, place: p, machine: o.machine}
	if err := s.openAll(ctx, o); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) openAll(ctx context.Context, o access) error {
	// The files are read once before anything is made, so that a mistake in them leaves no trace.
	var err error
	if s.lockText, err = s.readLock(); err != nil {
		return err
	}
	lock, err := s.parseLock(s.lockText)
	if err != nil {
		return err
	}
	if o.upgrade {
		lock.DropNames()
	}
	options, err := s.options(s.place, lock)
	if err != nil {
		return err
	}
	s.past = history.Open(s.place.history())
	options.History = s.past
	known, err := s.recall(ctx, o, options)
	if s.project != nil || err != nil {
		return err
	}
	spec, files, diags := hclspec.Load(options)
	if diags.HasErrors() {
		return &diagError{diags, files}
	}
	s.files = files
	if err := pick.Declared(spec, o.about...); err != nil {
		return err
	}
	if s.store == nil {
		if err := s.openState(ctx, o); err != nil {
			return err
		}
	}
	if o.try != nil {
		if options.Try, err = o.try(ctx, s, spec); err != nil {
			return err
		}
		if spec, s.files, diags = hclspec.Load(options); diags.HasErrors() {
			return &diagError{diags, s.files}
		}
	}
	load := s.loader(options, func() (*hclspec.Spec, hcl.Diagnostics) { return spec, diags })
	if o.derive != nil {
		if _, err := o.derive(spec); err != nil {
			return err
		}
		load = derived(load, o.derive)
	}
	config := s.config(ctx, o, load)
	config.Known = known
	if err := s.setMachines(ctx, &config.Config, spec, o); err != nil {
		return err
	}
	if j := o.job; j != nil {
		config.Hidden, config.Found, config.Named = append(config.Hidden, j.hides...), j.found, j.request.Literal
	}
	project, diags := campaign.Open(ctx, config, options.Lock)
	if diags.HasErrors() {
		return &diagError{diags, s.files}
	}
	s.project = project
	s.warn(diags)
	return s.share(o)
}

// warn prints warnings and keeps them for JSON.
func (s *session) warn(diags hcl.Diagnostics) {
	s.printDiags(diags, s.files)
	s.warnings = append(s.warnings, diags...)
}

// recall opens the project from the remembered plan, if that still holds. If not, known is for campaign.Open.
func (s *session) recall(ctx context.Context, o access, options hclspec.Options) (known memo.Known, err error) {
	if o.recall == recallNothing || !fileExists(s.memo()) {
		return known, nil
	}
	if err = s.openState(ctx, o); err != nil {
		return known, err
	}
	config := s.config(ctx, o, s.loader(options, nil))
	if s.project, known = campaign.Recall(ctx, config, options.Lock, o.recall == recallNodes); s.project != nil {
		err = s.share(o)
	}
	return known, err
}

// memorize remembers a plan of everything for the next process.
func (s *session) memorize(ctx context.Context, p *engine.Plan, sel *selection) {
	if len(s.warnings)+len(s.project.Spec.Names) > 0 || !sel.everything() || len(s.project.Others()) > 0 ||
		s.project.LacksSandbox("default", "required") != nil {
		return // each command must show warnings; names move; the machine may make sandboxes the next time
	}
	if err := s.project.Remember(ctx, p); err != nil {
		s.note("Warning: %v", err)
	}
}

// basis returns a digest of all that a plan depends on beside the project's files. Values of variables may be secret.
func (s *session) basis(ctx context.Context, o access) string {
	h := sha256.New()
	add := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(h, "%q ", part)
		}
		fmt.Fprintln(h)
	}
	self, err := os.Executable()
	stamp, _, err2 := cache.StampFile(nil, self)
	if err != nil || err2 != nil {
		stamp.Changed = time.Now().UnixNano() // unknown: equal to no other
	}
	add("program", version, fmt.Sprint(stamp))
	add("place", s.dir, s.place.file, s.place.store)
	add(append([]string{"allow"}, o.allow...)...)
	add("sandbox", o.sandbox, executor.SandboxSettings())
	add(append([]string{"vars"}, s.vars...)...)
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		if strings.HasPrefix(name, varPrefix) {
			add(name, s.env[name])
		}
	}
	for _, name := range s.varFiles {
		hashed, err := s.stat.Hash(ctx, name)
		add(name, hashed.SHA256, fmt.Sprint(err))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// openState opens the store, the journal and the other parts of the state, and the devices.
func (s *session) openState(ctx context.Context, o access) error {
	if err := s.prepare(); err != nil {
		return err
	}
	disk, err := disk.Open(s.place.store)
	if err != nil {
		return err
	}
	s.store = shared.New(disk)
	if s.store.Mended != "" {
		s.note("Warning: %s", s.store.Mended)
	}
	if s.journal, err = journal.Open(filepath.Join(s.state, "journal")); err != nil {
		return err
	}
	if s.stat = o.stat; s.stat == nil {
		s.stat = cache.OpenStatCache(filepath.Join(s.state, "stat"))
	}
	if s.imageDisk, err = s.ownImageDisk(); err != nil {
		return err
	}
	host, _ := machine.ThisHost() // 0 where it could not be read: unknown, and never short
	s.cpus = host.Cores
	if s.gpus = gpu.NewDriver(ctx, s.driverOptions()); o.deviceless {
		s.gpus = &gpu.Driver{}
	}
	if o.devices != "" {
		some, err := gpu.Only(o.devices, s.gpus.Devices())
		if err != nil {
			return &cli.UsageError{Message: err.Error(),
				Remedy: "benchgraph devices lists them; write indices or UUIDs, separated by commas"}
		}
		s.gpus.Keep(some)
	}
	s.host = executor.NewHost(s.hostOptions())
	s.pool, err = device.NewPool(device.Options{CPUs: s.cpus, Cores: device.Cores, Memory: host.Memory,
		Disk: device.DiskOf(s.place.store), GPUs: s.devices, Amiss: s.amiss, Links: s.gpus.Link,
		Ready: watch.Ready(s.gpus), Lost: s.gpus.Lost, Last: s.gpus.Doubtful, HostLock: s.hostLock(),
		GPULocks: s.sharedLocks(), Warn: s.note})
	return err
}

// ownImageDisk returns how much of the container engine's disk images may take, in bytes; 0: as much as there is.
func (s *session) ownImageDisk() (int64, error) {
	const name = "BENCHGRAPH_IMAGE_DISK"
	if s.env[name] == "" {
		return 0, nil
	}
	return cli.Size(name, s.env[name])
}

// config returns the configuration of the project.
func (s *session) config(ctx context.Context, o access, load campaign.Loader) campaign.Config {
	engine := s.ownEngine()
	return campaign.Config{Config: tasks.Config{
		StateDir: s.state, StoreDir: s.place.store, Store: s.store, Journal: s.journal, Stat: s.stat, Pool: s.pool,
		GPUs: s.gpus, Clocks: s.newClocks(),
		Host: s.host, Containers: containers.New(engine, s.host, s.containerMark()), Engine: engine,
		ImageDisk: s.imageDisk, ImageLocks: s.hostLock() + ".images",
		HTTP: &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			MaxIdleConnsPerHost:   download.PerHost,
			ResponseHeaderTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		}},
		Environ: s.environ(), GitEnviron: s.gitEnviron(), Sandbox: o.sandbox,
		Secret: func(name string) (string, bool) { v, ok := s.env[name]; return v, ok },
		Render: s.render, Offline: o.offline, Allow: o.allow, Progress: printable.NewWriter(s.stderr),
		LockFile: s.place.lock, Home: s.home, Hidden: cli.SecretFiles(s.env, signingKey),
	}, Options: campaign.Options{
		Load: load, History: s.past, Locked: o.locked, Upgrade: o.upgrade, MemoFile: s.memo(), Basis: s.basis(ctx, o),
	}}
}

// environ returns the environment of commands, beside the variables that the file declares; more names further ones.
func (s *session) environ(more ...string) []string {
	var list []string
	for _, name := range append(more, "HOME", "LANG", "PATH") {
		if value, ok := s.env[name]; ok {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// gitEnviron is the whole environment, since only git knows which variables its transports need.
func (a *app) gitEnviron() []string {
	list := make([]string, 0, len(a.env))
	for _, name := range slices.Sorted(maps.Keys(a.env)) {
		list = append(list, name+"="+a.env[name])
	}
	return list
}

// close saves the digests of files and closes the state.
func (s *session) close() {
	if s.stat != nil {
		if damage := s.stat.Damage(); damage != "" {
			s.note("Warning: %s", damage)
		}
		if err := s.stat.Save(); err != nil {
			s.note("Warning: %v", err)
		}
	}
	if s.journal != nil {
		if n := s.journal.Damaged(); n > 0 {
			s.note("Warning: %d damaged records of the journal were passed over; what they remembered is lost.", n)
		}
	}
	if s.gpus != nil {
		s.toldOdd.Do(s.tellOdd) // if the pool did not ask for devices
		s.gpus.Close()
	}
	for _, c := range s.closers() {
		if err := c.Close(); err != nil {
			s.note("Warning: %v", err)
		}
	}
}

func (s *session) closers() []io.Closer {
	list := []io.Closer{s.apptainer, s.host} // both may be nil
	if s.journal != nil {
		list = append(list, s.journal)
	}
	if s.pool != nil {
		list = append(list, s.pool)
	}
	for _, pool := range s.pools {
		list = append(list, pool)
	}
	if s.store != nil {
		list = append(list, s.store)
	}
	return list
}
