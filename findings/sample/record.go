// Package sample describes the result of a block of measurement, and reads the numbers in it: the directory of each
// member holds its raw output, and a record tells how the block went. A block stores no numbers; they are read from the
// output whenever they are needed.
package sample

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/metrics/counters"
)

// Files and directories in the result of a block.
const (
	RecordFile = "record.json"
	StdoutFile = "stdout" // of the measured command, in the directory of a member
	OutDir     = "out"    // files of $OUT, in the directory of a member
)

// PassDir returns the directory, within that of a member, for the output of a pass that is not the last one. Passes
// count from 1. The output of the last pass lies in the directory of the member, like that of a single pass.
func PassDir(number int) string { return fmt.Sprintf("pass-%d", number) }

// Silent reports whether a run left no output at all in the directory of its member. If so, the definition of the
// metric is not at fault.
func Silent(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, StdoutFile)); err != nil || info.Size() > 0 {
		return false
	}
	files, err := os.ReadDir(filepath.Join(dir, OutDir))
	return err == nil && len(files) == 0
}

// Record tells how a block went. It lies beside the raw output of the members.
type Record struct {
	Block    int                 `json:"block"`
	Seed     uint64              `json:"seed"`
	Seeds    Seeds               `json:"seeds,omitempty"` // seeds of the runs of each member, in order
	Order    []string            `json:"order"`           // members in the order in which they ran
	Class    machine.Class       `json:"hardware_class"`
	Instance machine.Instance    `json:"hardware_instance"`
	Canary   *Canary             `json:"canary,omitempty"`
	Members  map[string]Member   `json:"members"`
	Run      string              `json:"run,omitempty"`   // the apply that measured it
	Rule     []methodology.Field `json:"rule,omitempty"`  // the file's judging rule when the block was measured
	Tries    []Try               `json:"tries,omitempty"` // earlier attempts at the same block
}

// Member tells how the lifecycle of one member went. It has no numbers: they are read from the raw output.
type Member struct {
	Candidate string              `json:"candidate,omitempty"`
	Start     time.Time           `json:"start"`
	Duration  time.Duration       `json:"duration"`        // of the whole lifecycle
	Took      time.Duration       `json:"took,omitempty"`  // by the measured command alone
	Ready     time.Duration       `json:"ready,omitempty"` // time until its server was ready; 0: not known
	Failure   *failure.Failure    `json:"failure,omitempty"`
	Skipped   string              `json:"skipped,omitempty"` // why it was not run
	Same      bool                `json:"same,omitempty"`    // it was not run because its artefacts are the baseline's
	Devices   []string            `json:"devices,omitempty"`
	Watched   []watch.Summary     `json:"watched,omitempty"`   // state of the devices meanwhile
	Artefacts []Artefact          `json:"artefacts,omitempty"` // results of other nodes that it ran
	Procedure []methodology.Field `json:"procedure,omitempty"` // methodology; the file may have changed since
	Counters  counters.Counters   `json:"counters,omitempty"`  // of the server, while the measured command ran
	// paths of this lifecycle; the names of the paths are the same for all members
	Places []methodology.Field `json:"places,omitempty"`
}

// Artefact identifies what ran: the node and the digest of its verified result. For an image, the container engine and
// the Python in the image reported the rest.
type Artefact struct {
	Node   string `json:"node"`
	Digest string `json:"digest"`
	Image  string `json:"image,omitempty"` // ID
	// name, version and digest of the RECORD file of each package that benchgraph installed
	Packages []string          `json:"packages,omitempty"`
	Modules  map[string]string `json:"modules,omitempty"` // files of these packages that Python found
}

// Canary holds the numbers that the canary of a block printed.
type Canary struct {
	Unit    string      `json:"unit"`
	Before  CanaryRun   `json:"before"`            // before the first member
	Between []CanaryRun `json:"between,omitempty"` // before each of the others
	After   CanaryRun   `json:"after"`             // after the last one
}

// CanaryRun is one run of a canary. Its raw output is kept beside those of the members.
type CanaryRun struct {
	// member that ran next; empty: none, or an earlier version measured it
	Member   string          `json:"member,omitempty"`
	Value    float64         `json:"value"`
	Start    time.Time       `json:"start"`
	Duration time.Duration   `json:"duration"`
	Watched  []watch.Summary `json:"watched,omitempty"` // state of the devices meanwhile
}

// String returns the canary's numbers for people.
func (c Canary) String() string {
	var between string
	for _, r := range c.Between {
		between += fmt.Sprintf(", %s before %s", c.Figure(r.Value), r.Member)
	}
	return fmt.Sprintf("%s before%s, %s after (%s)", c.Figure(c.Before.Value), between, c.Figure(c.After.Value),
		Change(c.After.Value, c.Before.Value))
}

// Ahead returns the number that the canary printed before a member; 0: not known.
func (c *Canary) Ahead(member string) float64 {
	if c == nil {
		return 0
	}
	for _, r := range append([]CanaryRun{c.Before}, c.Between...) {
		if r.Member == member {
			return r.Value
		}
	}
	return 0
}

// Figure returns a number of the canary with its unit, for people.
func (c Canary) Figure(value float64) string {
	return strings.TrimSpace(fmt.Sprintf("%.6g %s", value, c.Unit))
}

// Change returns the relative difference between two numbers, for people.
func Change(value, from float64) string { return fmt.Sprintf("%+.1f %%", 100*(value/from-1)) }

// ReadRecord reads the record of a block.
func ReadRecord(e cache.Entry) (*Record, error) {
	text, err := fs.ReadFile(filepath.Join(e.Dir, RecordFile), longestRecord)
	if err != nil {
		return nil, err
	}
	rec := &Record{}
	if err := json.Unmarshal(text, rec); err != nil {
		return nil, fmt.Errorf("%s: %w", RecordFile, err)
	}
	return rec, nil
}

// The most bytes of a record, and of a file of WriteGathered. The store may be one of strangers.
const (
	longestRecord   = 64 << 20
	longestGathered = 256 << 20
)

// Summary returns facts about a block for people, beside its samples: pairs of a name and a text, from the record of
// its node.
func Summary(record json.RawMessage) (lines [][2]string) {
	var rec Record
	if json.Unmarshal(record, &rec) != nil || rec.Block == 0 {
		return nil
	}
	for _, g := range rec.Class.GPUs {
		if g.Locked > 0 {
			lines = append(lines, [2]string{"SM clock", fmt.Sprintf("locked at %d MHz", g.Locked)})
		}
	}
	if names := rec.Instance.Names(); len(names) > 0 {
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			texts = append(texts, name+" "+names[name])
		}
		lines = append(lines, [2]string{"machine", strings.Join(texts, ", ")})
	}
	if rec.Canary != nil {
		lines = append(lines, [2]string{"canary", rec.Canary.String()})
	}
	var ready []string
	for _, name := range slices.Sorted(maps.Keys(rec.Members)) {
		if after := rec.Members[name].Ready; after > 0 {
			ready = append(ready, fmt.Sprintf("%s after %.3g s", name, after.Seconds()))
		}
	}
	if len(ready) > 0 {
		lines = append(lines, [2]string{"ready", strings.Join(ready, ", ")})
	}
	return lines
}

// VoidedBy returns how many attempts at the block a candidate voided by failures of a rule.
func (r *Record) VoidedBy(candidate, rule string) (n int) {
	for _, try := range r.Tries {
		if l := try.Lost; try.Voided && l[0].Candidate == candidate && l[0].Rule == rule {
			n++
		}
	}
	return n
}
