// Package declared reads executor blocks: which scheduler they name, and with which settings.
package declared

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/executor/slurm"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote/attribute"
)

// Executor is an executor block.
type Executor struct {
	*Kind
	Name    string        // name of the block
	Block   string        // name of the block in the spec, with its type
	Machine string        // name of the machine block that describes the nodes of its jobs
	Setup   string        // lines of sh that a job runs before the worker
	WorkDir string        // absolute, seen by all nodes: where jobs keep their files; "": in the project's state
	Program string        // absolute path of benchgraph on the nodes; "": the same path as here
	CPUs    int           // of each job; 0: as many as the graph's node asks for
	Memory  int64         // of each job, in bytes; 0: as much as the graph's node asks for
	Time    time.Duration // limit of each job; 0: that of the scheduler
	MaxJobs int           // number of jobs that are queued or running at once
	Slurm   slurm.Asks    // of an executor for Slurm
	Modal   modal.Asks    // of an executor for Modal

	Kubernetes kubernetes.Asks // of an executor for Kubernetes
}

// Kind is a kind of executor block.
type Kind struct {
	Scheduler string // name
	Program   string // absolute path of benchgraph on the nodes by default; "": the same path as here
	Alike     bool   // jobs run on machines like this one, with its users, variables and directories
	Streams   bool   // the scheduler passes on the output of a job while it runs
	Cancel    string // how to cancel a job by hand; the name of the job follows
	Record    string // where to find the record of a job; the name of the job follows
	describe  string // how to make a machine file by a job
	// readers of the attributes that only this kind has
	attributes func(*Executor) map[string]attribute.Reader
	check      func(*Executor, *hclspec.Spec) []mistake // returns mistakes of the attributes together; may be nil
}

// kinds has all kinds, by the label of their blocks.
var kinds = map[string]*Kind{
	"slurm": {Scheduler: "Slurm", Alike: true, Cancel: "scancel ", Record: "sacct -j ",
		describe: "srun --gpus=8 benchgraph devices -json >FILE", attributes: (*Executor).forSlurm},
	"modal": {Scheduler: "Modal", Streams: true, Program: "/usr/local/bin/benchgraph",
		Cancel:     "on the page of its app at modal.com, sandbox ",
		Record:     "the page of its app at modal.com, sandbox ",
		describe:   "modal shell --image IMAGE --gpu H100:8 --cmd 'benchgraph devices -json' >FILE",
		attributes: (*Executor).forModal, check: (*Executor).checkModal},
	"kubernetes": {Scheduler: "Kubernetes", Streams: true, Program: "/usr/local/bin/benchgraph",
		Cancel: "kubectl delete job ", Record: "kubectl describe job ",
		describe:   "kubectl exec POD -- benchgraph devices -json >FILE",
		attributes: func(s *Executor) map[string]attribute.Reader { return attribute.Kubernetes(&s.Kubernetes) },
		check:      (*Executor).checkKubernetes},
}

// checkKubernetes returns mistakes of the attributes of an executor for Kubernetes together.
func (s *Executor) checkKubernetes(spec *hclspec.Spec) (all []mistake) {
	for _, text := range attribute.KubernetesLacks(&s.Kubernetes, spec.Store) {
		all = append(all, mistake{"", text})
	}
	return all
}

// Dial opens the scheduler. self is the path of benchgraph, and environ its environment as NAME=value. told gets
// messages for the user; it may be nil.
func (s *Executor) Dial(ctx context.Context, self string, environ []string, told func(string)) (job.Scheduler,
	error) {
	switch s.Kind {
	case kinds["modal"]:
		return modal.Open(ctx, modal.Options{Asks: s.Modal, Beside: filepath.Dir(self), Environ: environ, Told: told})
	case kinds["kubernetes"]:
		return kubernetes.Open(ctx, kubernetes.Options{Asks: s.Kubernetes, Beside: filepath.Dir(self), Environ: environ,
			Told: told})
	}
	return slurm.Open(ctx, slurm.Options{Asks: s.Slurm, WorkDir: s.WorkDir, Environ: environ, Told: told})
}

// HasVolume reports whether machines of the executor have a volume at a path or above it.
func (s *Executor) HasVolume(path string) bool {
	for _, volumes := range []map[string]string{s.Modal.Volumes, s.Kubernetes.Volumes} {
		for at := range volumes {
			if fs.Below(path, at) {
				return true
			}
		}
	}
	return false
}

// TakesImages reports whether only jobs use the images of a spec. here reports whether a benchmark is measured on this
// machine.
func TakesImages(spec *hclspec.Spec, here func(*hclspec.Benchmark) bool) bool {
	used, none := map[hclspec.Address]bool{}, hclspec.Address{}
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		if b.Image != none && here(b) {
			return false
		}
		for at := b.Image; at != none && !used[at]; {
			used[at] = true
			base := slices.IndexFunc(spec.Images, func(s hclspec.Image) bool { return s.Address == at })
			if at = none; base >= 0 {
				at = spec.Images[base].Base
			}
		}
	}
	for i := range spec.Images {
		if s := &spec.Images[i]; !used[s.Address] || s.Push != "" {
			return false
		}
	}
	return !slices.ContainsFunc(spec.Tasks, func(t hclspec.Task) bool { return t.Image != none }) &&
		!slices.ContainsFunc(spec.Wheels, func(w hclspec.Wheel) bool { return w.Build != nil && w.Build.Image != none })
}

// standardJobs is the default of max_jobs.
const standardJobs = 16

// Read reads the executor blocks of a file, and returns those that can run nodes.
func Read(spec *hclspec.Spec) (usable []Executor, diags hcl.Diagnostics) {
	for i := range spec.Executors {
		x := &spec.Executors[i]
		unused := func(why string) {
			unusable := &hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: &x.Range, Summary: "Executor not used",
				Detail: why}
			if slices.ContainsFunc(spec.Benchmarks, func(b hclspec.Benchmark) bool {
				return b.Executor == x.Address.Name
			}) {
				unusable.Severity, unusable.Summary = hcl.DiagError, "Executor without jobs"
				unusable.Detail += " Benchmarks name it."
			}
			diags = append(diags, unusable)
		}
		kind, name, _ := strings.Cut(x.Address.Name, "-")
		if kinds[kind] == nil {
			unused("It gets no node, since this version of benchgraph submits no jobs to " + kind + "." +
				hclspec.Choices(kind, slices.Collect(maps.Keys(kinds))))
			continue
		}
		s, mistakes := parse(kinds[kind], cmp.Or(name, kind), x)
		_, named := x.Attributes["machine"]
		if named && spec.Store == nil {
			mistakes = append(mistakes, mistake{"", "Jobs of a cluster put results into a store that machines share. " +
				`Write store { url = "…" } into the benchgraph block.`})
		}
		if named && s.check != nil {
			mistakes = append(mistakes, s.check(&s, spec)...)
		}
		if slices.ContainsFunc(usable, func(u Executor) bool { return u.Name == s.Name }) {
			mistakes = append(mistakes, mistake{"", fmt.Sprintf("Another executor has the name %q. Give this one "+
				"a name of its own: executor %q \"NAME\".", s.Name, kind)})
		}
		for _, m := range mistakes {
			at := x.Range
			if r, ok := x.Attributes[m.attribute]; ok {
				at = r
			}
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Subject: &at, Summary: "Invalid executor",
				Detail: m.text})
		}
		switch {
		case len(mistakes) > 0:
		case s.Machine == "" && named: // the reference is a mistake, which is reported elsewhere
		case s.Machine == "":
			unused("It names no machine, so that nobody knows what its nodes have. Describe one of them by a job, " +
				s.describe + "; declare the file in a machine block; " +
				"and name the block: machine = machine.NAME.")
		default:
			usable = append(usable, s)
		}
	}
	return usable, append(diags, checkPlaces(spec)...)
}

// checkPlaces returns mistakes of the executors that benchmarks name.
func checkPlaces(spec *hclspec.Spec) (diags hcl.Diagnostics) {
	first := map[[2]string]*hclspec.Benchmark{} // by name and commit
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		commit, _, paired := strings.Cut(b.Candidate, "/")
		if id := [2]string{b.Address.Name, commit}; !paired {
			continue
		} else if other := first[id]; other == nil {
			first[id] = b
		} else if other.Executor != b.Executor {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Subject: &b.ExecutorRange,
				Summary: "Invalid executor", Detail: fmt.Sprintf("%s and %s are measured together, and name different "+
					"executors. Let all candidates of a commit name the same one.", other.Address, b.Address)})
		}
	}
	return diags
}

// mistake is a mistake of an executor block.
type mistake struct {
	attribute string // "": of the block as a whole
	text      string
}

// readers returns the readers of the block's attributes.
func (s *Executor) readers() map[string]attribute.Reader {
	all := map[string]attribute.Reader{
		"setup": attribute.Text(&s.Setup), "program": attribute.Absolute(&s.Program), "cpus": attribute.Number(&s.CPUs),
		"max_jobs": attribute.Number(&s.MaxJobs), "memory": s.readMemory, "time": s.readTime,
	}
	maps.Copy(all, s.attributes(s))
	return all
}

func (s *Executor) forSlurm() map[string]attribute.Reader {
	const whose = "as sbatch takes it"
	return map[string]attribute.Reader{
		"partition": attribute.Word(&s.Slurm.Partition, whose), "account": attribute.Word(&s.Slurm.Account, whose),
		"qos":        attribute.Word(&s.Slurm.QOS, whose),
		"constraint": attribute.Word(&s.Slurm.Constraint, whose), "gres": attribute.Word(&s.Slurm.Gres, whose),
		"work_dir": attribute.Absolute(&s.WorkDir),
	}
}

func (s *Executor) readMemory(raw json.RawMessage) string {
	var size string
	bytes := int64(0)
	err := json.Unmarshal(raw, &size)
	if err == nil {
		bytes, err = units.RAMInBytes(size)
	}
	if s.Memory = bytes; err != nil || bytes < 1<<20 {
		return `a size of at least 1 MiB is expected, such as "200GiB"`
	}
	return ""
}

func (s *Executor) readTime(raw json.RawMessage) string {
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil {
		s.Time, err = time.ParseDuration(text)
	}
	if err != nil || s.Time < time.Minute {
		return `a duration of at least a minute is expected, such as "4h"`
	}
	return ""
}

// parse reads the attributes of an executor block.
func parse(kind *Kind, name string, x *hclspec.Executor) (Executor, []mistake) {
	s := Executor{Kind: kind, Name: name, Block: x.Address.Name, Machine: x.Machine, MaxJobs: standardJobs}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(x.Settings, &given); err != nil {
		return s, []mistake{{"", err.Error()}}
	}
	known := s.readers()
	var mistakes []mistake
	for _, name := range slices.SortedFunc(maps.Keys(given), func(a, b string) int {
		return cmp.Compare(x.Attributes[a].Start.Byte, x.Attributes[b].Start.Byte)
	}) {
		read, ok := known[name]
		switch {
		case !ok && given[name][0] == '{' && strings.HasSuffix(x.Range.Filename, ".json"): // nested labels
			label, _, _ := strings.Cut(x.Address.Name, "-")
			mistakes = append(mistakes, mistake{name, fmt.Sprintf("An executor for %s has no %q. In JSON, type and "+
				"name are one: \"executor\": {\"%s-%s\": {…}}.", s.Scheduler, name, label, name)})
		case !ok:
			mistakes = append(mistakes, mistake{name, fmt.Sprintf("An executor for %s has no %q.%s", s.Scheduler, name,
				hclspec.Choices(name, append(slices.Collect(maps.Keys(known)), "machine")))})
		case string(given[name]) != "null":
			if why := read(given[name]); why != "" {
				mistakes = append(mistakes, mistake{name, fmt.Sprintf("%s: %s.", name, why)})
			}
		}
	}
	return s, mistakes
}
