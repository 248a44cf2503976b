package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/reach"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote/declared"
)

type doctorFlags struct {
	json    bool
	network bool
}

func (a *app) doctor() cli.Command {
	o := &doctorFlags{}
	return cli.Command{
		Name: "doctor", Summary: "check what the project needs of this machine, with a remedy for each lack",
		Long: "The exit code is 1 only when something is missing that the project needs.",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.BoolVar(&o.network, "network", false, "also check that the declared URLs answer")
		},
		Run: func(ctx context.Context, _ []string) error { return a.runDoctor(ctx, o) },
	}
}

// finding is the outcome of one check of doctor.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warning or missing
	Needed bool   `json:"needed"` // by the project
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// checkup is one run of doctor.
type checkup struct {
	*app
	place
	spec     *hclspec.Spec       // empty if the file has mistakes, or if there is none
	clusters []declared.Executor // the executors that can run nodes
	findings []finding
}

func (c *checkup) ok(name, format string, args ...any) {
	c.findings = append(c.findings, finding{Name: name, Status: "ok", Detail: fmt.Sprintf(format, args...)})
}

// lacks adds a finding about a lack: missing if the project needs the thing, else a warning.
func (c *checkup) lacks(name string, needed bool, remedy, format string, args ...any) {
	status := "warning"
	if needed {
		status = "missing"
	}
	c.findings = append(c.findings, finding{name, status, needed, fmt.Sprintf(format, args...), remedy})
}

func (a *app) runDoctor(ctx context.Context, o *doctorFlags) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	c := &checkup{app: a, place: p, spec: &hclspec.Spec{}}
	c.project()
	c.tools(ctx)
	c.sandbox()
	c.limits()
	c.containers(ctx)
	c.gpus(ctx)
	c.executors(ctx)
	c.sharedStore(ctx)
	c.secrets()
	c.disk()
	c.directories()
	c.clock()
	c.health(ctx)
	if o.network {
		c.network(ctx)
	}
	missing := 0
	for _, f := range c.findings {
		if f.Status == "missing" {
			missing++
		}
	}
	if o.json {
		err = view.JSON(a.stdout, map[string]any{"format": view.Format, "missing": missing, "checks": c.findings})
	} else {
		for _, f := range c.findings {
			fmt.Fprintf(a.stdout, "%-8s %-16s %s\n", f.Status, view.Clean(f.Name), view.Clean(f.Detail))
			if f.Remedy != "" {
				fmt.Fprintf(a.stdout, "%-8s %-16s %s\n", "", "", view.Clean(f.Remedy))
			}
		}
	}
	if err == nil && missing > 0 {
		return hint("The remedies stand beside them.", "what the project needs is missing here: %s",
			view.Count(missing, "thing"))
	}
	return err
}

func (c *checkup) project() {
	options, err := c.options(c.place, nil)
	if err != nil {
		c.lacks("project", true, "Correct the command line.", "%v", err)
		return
	}
	spec, _, diags := hclspec.Load(options)
	if diags.HasErrors() {
		c.lacks("project", true, "benchgraph validate shows all mistakes with their places.", "%s: %s",
			view.Count(len(diags.Errs()), "mistake"), diags[0].Summary)
		return
	}
	c.spec = spec
	_, c.clusters, _ = checkMachines(spec)
	c.ok("project", "%s, %s", filepath.Join(c.dir, spec.Files[0]), view.Count(len(spec.Candidates), "candidate"))
}

// tools checks the programs that benchgraph itself runs, by their versions.
func (c *checkup) tools(ctx context.Context) {
	c.tool(ctx, "git", []string{"git", "--version"}, len(c.spec.Repos) > 0, "Install git 2.32 or newer.")
	c.tool(ctx, "sh", []string{"sh", "-c", "echo a POSIX shell"}, true, "Install a POSIX shell as sh in PATH.")
}

func (c *checkup) tool(ctx context.Context, name string, argv []string, needed bool, remedy string) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out bytes.Buffer
	s := session{app: c.app}
	host := executor.NewHost(executor.HostOptions{Owner: c.state})
	status, err := executor.Run(ctx, host, executor.Command{Argv: argv, Dir: c.dir, Env: s.environ(), Stdout: &out,
		Stderr: &out})
	first, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	switch {
	case err != nil:
		c.lacks(name, needed, remedy, "%v", err)
	case !status.OK():
		c.lacks(name, needed, remedy, "%s: %s", strings.Join(argv, " "), first)
	default:
		c.ok(name, "%s", first)
	}
}

// sandbox checks whether commands on the host can have namespaces of their own.
func (c *checkup) sandbox() {
	err := executor.CheckSandbox()
	refused, ok := errors.AsType[*executor.Unsupported](err)
	switch {
	case err == nil && executor.LandlockVersion() == 0:
		c.ok("sandbox", "commands on the host can have namespaces of their own, "+
			"without Landlock as a second line (Linux 5.19, landlock in lsm=)")
	case err == nil:
		c.ok("sandbox", "commands on the host can have namespaces of their own, "+
			"and Landlock (version %d) as a second line", executor.LandlockVersion())
	case ok && executor.SandboxOf() == executor.Landlock:
		c.lacks("sandbox", c.requiresSandbox(), refused.Remedy,
			"%s; sandbox = \"default\" has Landlock (version %d) alone", refused.What, executor.LandlockVersion())
	case ok:
		c.lacks("sandbox", c.requiresSandbox(), refused.Remedy, "%s", refused.What)
	default:
		c.lacks("sandbox", c.requiresSandbox(), "", "%v", err)
	}
}

// limits checks which limits of commands on the host this machine enforces.
func (c *checkup) limits() {
	e, err := executor.Enforced()
	if refused, ok := errors.AsType[*executor.Unsupported](err); ok {
		c.lacks("limits", false, refused.Remedy, "%s", refused.What)
		return
	}
	if err != nil {
		c.lacks("limits", false, "", "%v", err)
		return
	}
	var have, lack []string
	for _, l := range []struct {
		name string
		is   bool
	}{{"memory", e.Memory}, {"processes", e.Processes}, {"cpus", e.CPUs}} {
		if l.is {
			have = append(have, l.name)
		} else {
			lack = append(lack, l.name)
		}
	}
	if len(lack) > 0 {
		c.lacks("limits", false, "Let systemd delegate more (Delegate=cpu cpuset memory pids).",
			"enforced for commands on the host: %s; not %s", strings.Join(have, ", "), strings.Join(lack, ", "))
		return
	}
	c.ok("limits", "enforced for commands on the host: %s", strings.Join(have, ", "))
}

// requiresSandbox reports whether a block of the project cannot run without a sandbox.
func (c *checkup) requiresSandbox() bool {
	required := c.spec.Sandbox == "required"
	for word := range c.spec.Sandboxed() {
		required = required || word == "required"
	}
	return required
}

func (c *checkup) gpus(ctx context.Context) {
	var wanted []string
	driver := gpu.OpenDriver(ctx, c.driverOptions())
	defer driver.Close()
	if ctx.Err() != nil { // opening the driver may have taken until an interrupt
		return
	}
	devices, provider, reason := driver.Devices(), driver.Provider, driver.Reason
	host, _ := machine.ThisHost()
	pool, err := device.PoolOf(&machine.Profile{Host: host, Devices: devices}, "this machine")
	if err != nil {
		c.lacks("pool", true, "Report this with the output of benchgraph devices -json.", "%v", err)
		return
	}
	defer pool.Close()
	for _, b := range c.spec.Benchmarks {
		if g := b.GPUs; g != nil && c.needsHere(&b) && pool.Fits(device.Request{GPUs: device.GPUs{Count: g.Count,
			Memory: g.Memory}}) != nil {
			wanted = append(wanted, b.Address.String())
		}
	}
	switch {
	case len(wanted) > 0:
		c.lacks("gpu", true, "Run these elsewhere; the rest goes on without them.",
			"%s can never be served here, such as %s (%s)", view.Count(len(wanted), "benchmark"), wanted[0],
			cmp.Or(reason, "too few devices, or too small"))
	case len(devices) == 0:
		c.ok("gpu", "none, and nothing here needs one: %s", reason)
	default:
		c.ok("gpu", "%s by %s", view.Count(len(devices), "device"), provider)
	}
	for _, warning := range append(driver.Odd, gpu.Warnings(devices)...) {
		c.lacks("gpu", false, "", "%s", warning)
	}
}

// needsHere reports whether this machine must have the devices of a benchmark: executors serve all others.
func (c *checkup) needsHere(b *hclspec.Benchmark) bool {
	return len(c.clusters) == 0 || b.Executor == hclspec.Local
}

func (c *checkup) secrets() {
	for _, name := range c.spec.Secrets() {
		if c.env[name] == "" {
			c.lacks("secret "+name, true, "export "+name+" before apply.", "is not set in the environment")
		} else {
			c.ok("secret "+name, "is set")
		}
	}
}

// lowDisk is the free space below which doctor warns.
const lowDisk = 5 << 30

func (c *checkup) disk() {
	var at unix.Statfs_t
	err := unix.Statfs(fs.Nearest(c.state), &at)
	if free := int64(at.Bavail) * int64(at.Bsize); err != nil {
		c.lacks("disk", false, "", "%s: %v", c.state, err)
	} else if free < lowDisk {
		c.lacks("disk", false, "Free some (benchgraph cache gc -unreachable), or choose another place with "+
			"BENCHGRAPH_STATE_DIR.", "%s free for %s", view.Bytes(free), c.state)
	} else {
		c.ok("disk", "%s free for %s", view.Bytes(free), c.state)
	}
}

// directories checks that files can be made in the state and the store, and run in the store, where commands work.
func (c *checkup) directories() {
	const elsewhere = "choose another place with BENCHGRAPH_STATE_DIR or BENCHGRAPH_CACHE_DIR."
	if err := cmp.Or(fs.Writable(c.state), disk.Writable(c.store)); err != nil {
		c.lacks("directories", true, "Make it writable for your user, or "+elsewhere, "nothing can be written: %v", err)
	} else if fs.NoExec(c.store) {
		c.lacks("directories", false, "Mount it without noexec, or "+elsewhere,
			"%s is mounted noexec: programs that commands build or check out cannot run", c.store)
	} else {
		c.ok("directories", "%s and %s can be written to", c.state, c.store)
	}
}

// clock checks whether the clock is behind: files of the project cannot be from the future.
func (c *checkup) clock() {
	const tolerance = 2 * time.Minute
	for _, name := range c.spec.Files {
		info, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(name)))
		if err == nil && time.Until(info.ModTime()) > tolerance {
			c.lacks("clock", false, "Set the clock, or touch the file.", "%s was changed in the future: %s", name,
				info.ModTime().Format(time.DateTime))
			return
		}
	}
	c.ok("clock", "%s", time.Now().Format(time.RFC3339))
}

// health opens the store and the journal, if they exist.
func (c *checkup) health(ctx context.Context) {
	if !fileExists(c.store) {
		c.ok("store", "none yet: %s", c.store)
		return
	}
	entries, total := 0, int64(0)
	d, err := disk.Open(c.store)
	if err == nil {
		defer d.Close()
		err = d.List(ctx, nil, func(m cache.Meta) error { entries++; total += m.Bytes; return nil })
	}
	if err != nil {
		c.lacks("store", true, "Choose another place with BENCHGRAPH_CACHE_DIR, or mend this one.", "%v", err)
		return
	}
	j, err := journal.Open(filepath.Join(c.state, "journal"))
	if err == nil {
		defer j.Close()
		err = j.Load()
	}
	if err != nil {
		c.lacks("journal", true, "Choose another place with BENCHGRAPH_STATE_DIR, or mend this one.", "%v", err)
		return
	}
	if n := j.Damaged(); n > 0 {
		c.lacks("journal", false, "No remedy is needed: their attempts are forgotten.", "%d damaged records", n)
	}
	c.ok("store", "%s entries, %s; benchgraph cache verify reads every byte", view.Number(entries), view.Bytes(total))
}

// network checks whether every declared URL answers.
func (c *checkup) network(ctx context.Context) {
	needed := map[string]bool{}
	for _, r := range c.spec.Repos {
		needed[r.URL] = true
	}
	for _, f := range c.spec.Fetches {
		needed[f.URL] = true
	}
	for _, w := range c.spec.Wheels {
		for _, url := range w.Prebuilt {
			needed[url] = needed[url] || w.Build == nil && len(w.Prebuilt) == 1
		}
	}
	client := http.Client{Timeout: 20 * time.Second}
	for _, url := range sortedKeys(needed) {
		u, err := neturl.Parse(url)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		name := "url " + u.Redacted()
		if err := reach.URL(ctx, &client, url); err != nil {
			c.lacks(name, needed[url],
				"Check the URL, the network and the proxy; with benchgraph.lock.hcl, plan needs no network.", "%v", err)
		} else {
			c.ok(name, "can be reached")
		}
	}
}
