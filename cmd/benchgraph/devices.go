package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
	"github.com/benchgraph/benchgraph/device/hostlock"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/executor"
)

type devicesFlags struct {
	json  bool
	watch bool
}

func (a *app) devices() cli.Command {
	o := &devicesFlags{}
	return cli.Command{
		Name: "devices", Summary: "list the GPUs: memory, clocks, throttling, processes, leases and links",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.BoolVar(&o.watch, "watch", false, "repeat every second until interrupted")
		},
		Run: func(ctx context.Context, _ []string) error { return a.runDevices(ctx, o) },
	}
}

// driverOptions returns how the environment of this process lets it see GPUs.
func (a *app) driverOptions() gpu.Options {
	o := gpu.Options{Library: a.env["BENCHGRAPH_NVML"],
		MPS: cmp.Or(a.env["CUDA_MPS_PIPE_DIRECTORY"], "/tmp/nvidia-mps")}
	if visible, ok := a.env["CUDA_VISIBLE_DEVICES"]; ok {
		o.Mask.Visible = &visible
	}
	o.Mask.Slurm = cmp.Or(a.env["SLURM_STEP_GPUS"], a.env["SLURM_JOB_GPUS"])
	return o
}

// devices returns the GPUs of this machine. The pool calls it once, so that a warning about the driver is printed once.
func (s *session) devices() []gpu.Device {
	all := s.gpus.Devices()
	s.toldOdd.Do(s.tellOdd)
	for _, warning := range gpu.Warnings(all) {
		s.note("Warning: %s", view.Clean(warning))
	}
	if len(all) > 0 {
		if err := hostlock.Check(s.sharedLocks()); err != nil {
			s.note("Warning: no device can be leased: %v", err)
		}
	}
	return all
}

// amiss returns which devices of this machine are left out, and why.
func (s *session) amiss() string { return view.Clean(strings.Join(s.gpus.Odd, "; ")) }

// tellOdd warns of devices that are left out, and of a driver that has kept the command waiting.
func (s *session) tellOdd() {
	for _, odd := range s.gpus.Odd {
		if !s.gpus.Hangs {
			s.note("Warning: GPUs: %s", view.Clean(odd))
		}
	}
	if s.gpus.Hangs {
		s.note("Warning: GPUs: %s. Look at the kernel's log (dmesg: NVRM, Xid); nvidia-smi --gpu-reset or a reboot "+
			"may mend that.", view.Clean(s.gpus.Reason))
	}
}

// hostLock is the file by which all benchgraph processes of this user share devices, if there are no sharedLocks for
// all users.
func (a *app) hostLock() string {
	return cmp.Or(a.env["BENCHGRAPH_HOST_LOCK"], fmt.Sprintf("/tmp/benchgraph-%d/host.lock", os.Getuid()))
}

// sharedLocks is the directory of the locks of devices and of quiet, which all users of the machine share; "" if the
// user has a host lock of his own.
func (a *app) sharedLocks() string {
	if a.env["BENCHGRAPH_HOST_LOCK"] != "" {
		return ""
	}
	return "/tmp/benchgraph-devices"
}

func (a *app) runDevices(ctx context.Context, o *devicesFlags) error {
	driver := gpu.OpenDriver(ctx, a.driverOptions())
	defer driver.Close()
	if ctx.Err() != nil { // opening the driver may have taken until an interrupt
		return context.Cause(ctx)
	}
	show := a.tellDevices
	if o.json {
		show = a.writeDevices
	}
	for {
		if err := show(ctx, driver, o.watch); err != nil || !o.watch {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// deviceDoc is one device in JSON.
type deviceDoc struct {
	gpu.Device
	gpu.Reading
	Error string            `json:"error,omitempty"` // why the device does not answer
	Links map[string]string `json:"links,omitempty"` // by UUID: NV4, PIX, SYS, …
	Lease *hostlock.Holder  `json:"lease"`
}

func (a *app) inspect(ctx context.Context, driver *gpu.Driver) ([]deviceDoc, error) {
	list := []deviceDoc{}
	states, err := watch.States(ctx, driver)
	for _, d := range states {
		doc := deviceDoc{Device: d.Device, Reading: d.Reading, Links: map[string]string{}}
		lease, unknown := hostlock.HolderOf(d.Device, a.hostLock(), a.sharedLocks())
		if unknown != nil {
			a.note("Warning: who has leased device %d: %v", d.Index, unknown)
		}
		doc.Lease = lease
		if d.Err != nil {
			doc.Error = d.Err.Error()
		}
		for _, other := range driver.Devices() {
			if other.UUID != d.UUID {
				doc.Links[other.UUID] = driver.Link(d.Device, other).String()
			}
		}
		list = append(list, doc)
	}
	return list, err
}

// thisHost describes this machine with the fields that are in keys of nodes.
func thisHost() (machine.Host, error) {
	h, err := machine.ThisHost()
	h.Sandbox = string(executor.SandboxOf())
	enforced, none := executor.Enforced()
	h.Enforces = none == nil && enforced.CPUs
	return h, err
}

func (a *app) writeDevices(ctx context.Context, driver *gpu.Driver, _ bool) error {
	devices, err := a.inspect(ctx, driver)
	if err != nil {
		return err
	}
	host, err := thisHost()
	if err != nil {
		a.note("Warning: %v", err)
	}
	doc := map[string]any{"format": view.Format, "provider": driver.Provider, "machine": host,
		"devices": devices}
	for name, value := range map[string]string{"reason": driver.Reason, "driver_version": driver.Version,
		"cuda_version": driver.CUDA} {
		if value != "" {
			doc[name] = value
		}
	}
	if driver.Hidden > 0 {
		doc["hidden"] = driver.Hidden
	}
	return view.JSON(a.stdout, doc)
}

func (a *app) tellDevices(ctx context.Context, driver *gpu.Driver, again bool) error {
	docs, err := a.inspect(ctx, driver)
	if err != nil {
		return err
	}
	if again {
		fmt.Fprintf(a.stdout, "%s\n", time.Now().Format(time.TimeOnly))
	}
	if len(driver.Devices()) == 0 {
		_, err := fmt.Fprintf(a.stdout, "No GPU: %s.\n", view.Clean(driver.Reason))
		return err
	}
	rows := [][]string{{"index", "name", "memory", "used", "busy", "power", "temp", "SM clock", "slowed by", "uuid"}}
	users := [][]string{{"index", "pid", "user", "program", "memory"}}
	for _, d := range docs {
		if d.Error != "" {
			rows = append(rows, []string{fmt.Sprint(d.Index), view.Clean(d.Name), view.Bytes(d.Memory), "?", "", "", "",
				"", view.Clean(d.Error), view.Clean(d.UUID)})
			continue
		}
		slow := strings.Join(d.Slowdowns, " ")
		if n := d.Uncorrected; n != nil && *n > 0 {
			slow = strings.TrimSpace(fmt.Sprintf("%s %d uncorrected memory errors", slow, *n))
		}
		rows = append(rows, []string{
			fmt.Sprint(d.Index), view.Clean(d.Name), view.Bytes(d.Memory), view.Bytes(d.Reading.Used),
			amount(d.Utilization, "", " %"),
			amount(d.Power, limit(d.Reading.PowerLimit), " W"), amount(d.Temperature, "", " °C"),
			amount(d.SMClock, limit(d.MaxSMClock), " MHz"), slow, view.Clean(d.UUID)})
		for _, p := range d.Processes {
			users = append(users, []string{fmt.Sprint(d.Index), fmt.Sprint(p.PID), view.Clean(p.User),
				view.Clean(p.Name), view.Bytes(p.Used)})
		}
	}
	view.Table(a.stdout, "", rows)
	if len(users) > 1 {
		fmt.Fprintln(a.stdout)
		view.Table(a.stdout, "", users)
	}
	tellLeases(a, docs)
	tellLinks(a, docs)
	foot := driver.Provider
	if driver.Version != "" {
		foot += ", driver " + view.Clean(driver.Version)
	}
	if driver.CUDA != "" {
		foot += ", CUDA up to " + driver.CUDA
	}
	if driver.Hidden > 0 {
		foot += fmt.Sprintf("; %d more hidden by the environment", driver.Hidden)
	}
	if driver.Reason != "" {
		foot += "; " + view.Clean(driver.Reason)
	}
	_, err = fmt.Fprintf(a.stdout, "\n%s\n", foot)
	return err
}

// tellLeases shows which devices are leased, and to whom.
func tellLeases(a *app, docs []deviceDoc) {
	rows := [][]string{{"index", "leased to"}}
	for _, d := range docs {
		if d.Lease != nil {
			rows = append(rows, []string{fmt.Sprint(d.Index), view.Clean(d.Lease.String())})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintln(a.stdout)
		view.Table(a.stdout, "", rows)
	}
}

// tellLinks shows how each pair of devices is connected, if that is known.
func tellLinks(a *app, docs []deviceDoc) {
	if len(docs) < 2 {
		return
	}
	head := []string{"link"}
	for _, d := range docs {
		head = append(head, fmt.Sprint(d.Index))
	}
	rows, known := [][]string{head}, false
	for _, d := range docs {
		row := []string{fmt.Sprint(d.Index)}
		for _, other := range docs {
			link := d.Links[other.UUID]
			known = known || link != "" && link != "?"
			row = append(row, cmp.Or(link, "·"))
		}
		rows = append(rows, row)
	}
	if known {
		fmt.Fprintln(a.stdout)
		view.Table(a.stdout, "", rows)
	}
}

// amount formats a number with its total. Both may be missing, if the driver does not report them.
func amount[N int | float64](n *N, of, unit string) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f%s%s", float64(*n), of, unit)
}

func limit[N int | float64](n *N) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(" of %.0f", float64(*n))
}
