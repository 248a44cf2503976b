package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote/declared"
	"github.com/benchgraph/benchgraph/tasks"
)

const machineRemedy = "Write it on that machine: benchgraph devices -json >FILE."

// checkMachines reads the descriptions of the machines that the file declares, by name, and the executors that reach
// machines. Each description that cannot be read is a diagnostic.
func checkMachines(spec *hclspec.Spec) (map[string]*machine.Profile, []declared.Executor, hcl.Diagnostics) {
	profiles := map[string]*machine.Profile{}
	var diags hcl.Diagnostics
	for i := range spec.Machines {
		m := &spec.Machines[i]
		profile, err := machine.ParseProfile(m.Document)
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Subject: &m.DevicesRange,
				Summary: "Machine not described", Detail: fmt.Sprintf("%s: %v. %s", m.Devices, err, machineRemedy)})
			continue
		}
		profiles[m.Address.Name] = profile
	}
	usable, more := declared.Read(spec)
	return profiles, usable, append(diags, more...)
}

// elsewhere returns the machine to plan for, by the name of a machine block or the path of a description. It returns
// nil if that is this machine, unless an executor reaches others like it.
func (s *session) elsewhere(named string, profiles map[string]*machine.Profile, o access,
	reached bool) (*tasks.Elsewhere, error) {
	name, profile := named, profiles[named]
	if profile == nil {
		document, err := fs.ReadFile(s.below(named), machine.MaxProfile)
		if errors.Is(err, os.ErrNotExist) {
			return nil, hint(machineRemedy, "-machine %s: there is neither a machine block nor a file of that name%s",
				named, cli.Suggest(named, slices.Collect(maps.Keys(profiles))))
		}
		if err == nil {
			profile, err = machine.ParseProfile(document)
		}
		if err != nil {
			return nil, hint(machineRemedy, "-machine %s: %w", named, fs.Cause(err))
		}
		name = strings.TrimSuffix(filepath.Base(named), ".json")
	}
	if len(profile.Lacks) > 0 {
		s.note("Warning: %s does not say everything. These are taken from this machine: %s. %s", view.Clean(named),
			strings.Join(profile.Lacks, " and "), machineRemedy)
	}
	if o.job != nil {
		return s.likeHere(name, profile, executor.Confinement(o.job.request.Confines))
	}
	host, _, err := machine.Inventory(nil)
	if err == nil && !reached && profile.Is(host, s.gpus.Devices()) {
		return nil, nil
	}
	pool, err := device.PoolOf(profile, "machine "+name)
	if err != nil {
		return nil, fmt.Errorf("-machine %s: %w", named, err)
	}
	s.pools = append(s.pools, pool)
	return &tasks.Elsewhere{Name: name, Profile: profile, Pool: pool}, nil
}

// likeHere returns the described machine for a worker on a machine of that kind. The worker may have only some of its
// devices.
func (s *session) likeHere(name string, profile *machine.Profile, builder executor.Confinement) (*tasks.Elsewhere,
	error) {
	host, err := thisHost()
	if err != nil {
		s.note("Warning: %v", err)
	}
	kinds, described := machine.Kinds(s.gpus.Devices()), machine.Kinds(profile.Devices)
	more := slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(described, kind) })
	confined := profile.Host.Sandbox == "" ||
		profile.Host.Sandbox == host.Sandbox && profile.Host.Enforces == host.Enforces
	if more || !confined || profile.Host.Class().String() != host.Class().String() {
		return nil, hint("Describe the nodes of the cluster anew, by a job with the options of the executor block; or "+
			"keep the jobs on nodes of one kind, with constraint in that block.",
			"this machine is no %s: it has %s; %s; sandbox %s, and that is %s; sandbox %s", name,
			cmp.Or(strings.Join(kinds, ", "), "no device"), host.Class(), host.Sandbox, profile, profile.Host.Sandbox)
	}
	return &tasks.Elsewhere{Name: name, Profile: profile, Pool: s.pool, Here: true, Builder: builder}, nil
}

// otherPlatform reports why results that are built here would not run on the planned machine, or "".
func (s *session) otherPlatform() string {
	for _, m := range s.project.Others() { // all have the same platform
		if m.Host.OS != runtime.GOOS || m.Host.Arch != runtime.GOARCH {
			return fmt.Sprintf("machine %s is %s/%s, and this one is %s/%s: what is built here does not run there",
				m.Name, m.Host.OS, m.Host.Arch, runtime.GOOS, runtime.GOARCH)
		}
	}
	return ""
}

// checkPlatform refuses to build for another platform.
func (s *session) checkPlatform() error {
	if other := s.otherPlatform(); other != "" {
		return hint("Apply there, or on a machine of its platform.", "%s", other)
	}
	return nil
}

// planned prints the machines of a plan, and the nodes that can run on this one.
func (s *session) planned(ctx context.Context, p *engine.Plan, f *forecast.Forecast) {
	waiting, _ := s.waitingDeclared(p)
	for _, w := range waiting {
		s.note("%s of the blocked can run on machine %s: benchgraph plan -machine=%s plans for it.",
			view.Number(len(w.nodes)), w.machine, w.machine)
	}
	used := map[*tasks.Elsewhere]bool{}
	for i := range s.project.Spec.Benchmarks {
		used[s.project.PlaceOf(&s.project.Spec.Benchmarks[i])] = true
	}
	for _, m := range s.project.Others() {
		if !used[m] && m.By != nil {
			s.note("Warning: no benchmark is measured by executor %s. A benchmark may name the executor: executor = "+
				"executor.%s.", view.Clean(m.By.Name), view.Clean(strings.Replace(m.By.Block, "-", ".", 1)))
			continue
		}
		s.note("Planned for machine %s: %s.", view.Clean(m.Name), view.Clean(m.String()))
		if x := m.Remote; x != nil {
			if more := x.Exceeds(m.Host); more != "" {
				s.note("Warning: jobs of executor %s ask for %s: they may never start.", x.Name, more)
			}
		}
	}
	if other := s.otherPlatform(); other != "" {
		s.note("Warning: %s.", view.Clean(other))
		return
	}
	waits := len(f.Waits)
	m := s.project.Elsewhere
	if jobs := s.project.Executors(); len(jobs) > 0 {
		if text := view.Executors(f); text != "" {
			s.note("%s", text)
		}
		for _, w := range s.waitingElsewhere(ctx, p) {
			s.note("Neither an executor nor this machine can run %s.", view.Clean(w.list()))
		}
		return
	} else if m == nil {
		for _, w := range s.waitingElsewhere(ctx, p) {
			s.note("%s.", view.Clean(w.String()))
		}
		return
	}
	if here := p.Counts()[engine.Run] - waits; here > 0 && waits > 0 {
		s.note("Of these nodes, %s can be made here: benchgraph apply -machine=%s. The others wait for machine %s.",
			view.Number(here), view.Clean(s.machine), view.Clean(m.Name))
	}
}

// outgrown reports whether a node of the plan may wait for another machine.
func (s *session) outgrown(p *engine.Plan) bool {
	return len(s.project.Others()) > 0 || slices.ContainsFunc(hindered(p), func(st *engine.Step) bool {
		return s.project.WaitsFor(p, st) != ""
	})
}

// waiting has the nodes that wait for one machine.
type waiting struct {
	machine string
	nodes   []string // addresses, the first to wait first
	why     string   // why the first one waits
}

// waitings has the nodes that wait, by machine.
type waitings []*waiting

func (all *waitings) add(machine, address, why string) {
	i := slices.IndexFunc(*all, func(w *waiting) bool { return w.machine == machine })
	if i < 0 {
		i = len(*all)
		*all = append(*all, &waiting{machine: machine, why: why})
	}
	(*all)[i].nodes = append((*all)[i].nodes, address)
}

// String returns the nodes in one line.
func (w *waiting) String() string {
	verb := "wait"
	if len(w.nodes) == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s %s for machine %s: %s", view.Count(len(w.nodes), "node"), verb, w.machine, w.list())
}

// list names the first node, the number of the others, and the reason.
func (w *waiting) list() string {
	more := ""
	if len(w.nodes) > 1 {
		more = fmt.Sprintf(" and %s more", view.Number(len(w.nodes)-1))
	}
	return fmt.Sprintf("%s%s: %s", w.nodes[0], more, w.why)
}

// waitingElsewhere returns the nodes that an apply for another machine leaves to that machine; nil if there are none.
func (s *session) waitingElsewhere(ctx context.Context, whole *engine.Plan) []*waiting {
	waits := s.project.Waits(ctx, whole)
	if len(waits) == 0 {
		return nil
	}
	var all waitings
	machines := map[string]string{} // by address
	for i := range whole.Steps {
		n := whole.Steps[i].Node
		why := waits[n.Address]
		if why == "" {
			continue
		}
		for _, dep := range forecast.Waits(n) { // a node that can be made here waits for its dependencies
			machines[n.Address] = cmp.Or(machines[n.Address], machines[dep.Address])
		}
		if e := s.project.PlaceOfNode(n); e != nil {
			machines[n.Address] = e.Name
		}
		all.add(machines[n.Address], n.Address, why)
	}
	return all
}

// waitingDeclared splits the blocked nodes: those that a machine block can serve, by machine, and the rest.
func (s *session) waitingDeclared(p *engine.Plan) (waits []*waiting, rest []*engine.Step) {
	var all waitings
	for _, step := range hindered(p) {
		if name := s.project.WaitsFor(p, step); name != "" {
			all.add(name, step.Node.Address, step.Reason)
		} else {
			rest = append(rest, step)
		}
	}
	return all, rest
}
