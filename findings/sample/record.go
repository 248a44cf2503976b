// Package sample knows what a block of measurement leaves in the store, and reads the numbers in it: the directory of
// each member holds its raw output, and a record says how the block went. No number is stored; each is read anew.
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
	"github.com/benchgraph/benchgraph/metrics/counters"
)

// What lies in the result of a block.
const (
	RecordFile = "record.json"
	StdoutFile = "stdout" // of the measured command, in the directory of a member
	OutDir     = "out"    // what was written to $OUT, likewise
)

// PassDir is the directory, in that of a member, with the output of a pass of the measured command that another one
// followed. Passes count from 1. The output of the last one lies where that of a single pass does.
func PassDir(number int) string { return fmt.Sprintf("pass-%d", number) }

// Silent says that a run left no output at all in the directory of its member: then it is not the definition of the
// metric that is wrong.
func Silent(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, StdoutFile)); err != nil || info.Size() > 0 {
		return false
	}
	files, err := os.ReadDir(filepath.Join(dir, OutDir))
	return err == nil && len(files) == 0
}

// Record is what a block says of itself, beside the raw output of its members.
type Record struct {
	Block    int                 `json:"block"`
	Seed     uint64              `json:"seed"`
	Seeds    Seeds               `json:"seeds,omitempty"` // of the runs of each member, in turn
	Order    []string            `json:"order"`           // members in the order in which they ran
	Class    machine.Class       `json:"hardware_class"`
	Instance machine.Instance    `json:"hardware_instance"`
	Canary   *Canary             `json:"canary,omitempty"`
	Members  map[string]Member   `json:"members"`
	Run      string              `json:"run,omitempty"`   // the apply that measured it
	Rule     []methodology.Field `json:"rule,omitempty"`  // how the file judged when the block was measured
	Tries    []Try               `json:"tries,omitempty"` // earlier attempts at the same block
}

// Member is how one member's lifecycle went. Numbers are not in it: they are read from the raw output.
type Member struct {
	Candidate string              `json:"candidate,omitempty"`
	Start     time.Time           `json:"start"`
	Duration  time.Duration       `json:"duration"`        // of the whole lifecycle
	Took      time.Duration       `json:"took,omitempty"`  // by the measured command alone
	Ready     time.Duration       `json:"ready,omitempty"` // its server was, so long after its start; 0: not known
	Failure   *failure.Failure    `json:"failure,omitempty"`
	Skipped   string              `json:"skipped,omitempty"` // why it was not run
	Same      bool                `json:"same,omitempty"`    // it was not run because its artefacts are the baseline's
	Devices   []string            `json:"devices,omitempty"`
	Watched   []watch.Summary     `json:"watched,omitempty"`   // how the devices were meanwhile
	Artefacts []Artefact          `json:"artefacts,omitempty"` // which results of other nodes it ran
	Procedure []methodology.Field `json:"procedure,omitempty"` // how it was measured, whatever the file says since
	Counters  counters.Counters   `json:"counters,omitempty"`  // what the server counted while the measured command ran
	// paths of this lifecycle, by the names that all members have for them
	Places []methodology.Field `json:"places,omitempty"`
}

// Artefact proves what ran: the node and the digest of its verified result, and of an image what the engine and the
// Python in it said of what ran.
type Artefact struct {
	Node   string `json:"node"`
	Digest string `json:"digest"`
	Image  string `json:"image,omitempty"` // ID
	// name, version and digest of the RECORD of what benchgraph installed
	Packages []string          `json:"packages,omitempty"`
	Modules  map[string]string `json:"modules,omitempty"` // of those packages: the files that were found
}

// Canary is what the canary of a block printed.
type Canary struct {
	Unit    string      `json:"unit"`
	Before  CanaryRun   `json:"before"`            // before the first member
	Between []CanaryRun `json:"between,omitempty"` // before each of the others
	After   CanaryRun   `json:"after"`             // after the last one
}

// CanaryRun is one run of a canary. Its raw output is kept beside those of the members.
type CanaryRun struct {
	// that ran next; empty: the last one had run, or an earlier version measured it
	Member   string          `json:"member,omitempty"`
	Value    float64         `json:"value"`
	Start    time.Time       `json:"start"`
	Duration time.Duration   `json:"duration"`
	Watched  []watch.Summary `json:"watched,omitempty"` // how the devices were meanwhile
}

// String is a canary's numbers for people.
func (c Canary) String() string {
	var between string
	for _, r := range c.Between {
		between += fmt.Sprintf(", %s before %s", c.Figure(r.Value), r.Member)
	}
	return fmt.Sprintf("%s before%s, %s after (%s)", c.Figure(c.Before.Value), between, c.Figure(c.After.Value),
		Change(c.After.Value, c.Before.Value))
}

// Ahead is the number that the canary printed before a member; 0: not known.
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

// Figure is a number of the canary's with its unit, for people.
func (c Canary) Figure(value float64) string {
	return strings.TrimSpace(fmt.Sprintf("%.6g %s", value, c.Unit))
}

// Change is how far a number is from another one, for people.
func Change(value, from float64) string { return fmt.Sprintf("%+.1f %%", 100*(value/from-1)) }

// ReadRecord reads what a block recorded.
func ReadRecord(e cache.Entry) (*Record, error) {
	text, err := os.ReadFile(filepath.Join(e.Dir, RecordFile))
	if err != nil {
		return nil, err
	}
	rec := &Record{}
	if err := json.Unmarshal(text, rec); err != nil {
		return nil, fmt.Errorf("%s: %w", RecordFile, err)
	}
	return rec, nil
}

// Summary is what people want to know of a block beside its samples: pairs of a name and a text, from the record of its
// node.
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
		var told []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			told = append(told, name+" "+names[name])
		}
		lines = append(lines, [2]string{"machine", strings.Join(told, ", ")})
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
