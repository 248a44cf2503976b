package bundle

import (
	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/findings/sample"
)

// The names in a bundle: see docs/bundle.md.
const (
	DocumentFile = "bundle.json"
	ReportFile   = "report.json" // of all reports together
	ReportsPart  = "reports/"
	LockFile     = "benchgraph.lock.hcl" // below the project
	ProjectPart  = "project/"

	historyFile = "history"
	resultsPart = "results/"
	logsPart    = "logs/"
	givenPart   = "given/" // files of variables
)

// Document is the data of a bundle beside its files.
type Document struct {
	Format     string            `json:"format"`
	Benchgraph string            `json:"benchgraph"` // version
	Revision   string            `json:"revision"`   // Build of that benchgraph; empty: unknown
	File       string            `json:"file"`       // root file below project
	Vars       map[string]string `json:"vars,omitempty"`
	EnvVars    map[string]string `json:"env_vars,omitempty"`
	VarFiles   []string          `json:"var_files,omitempty"` // below given, in their order
	// files and directories of the project that only need to exist
	Present []string `json:"present,omitempty"`
	Folders []string `json:"directories,omitempty"`
	Logs    string   `json:"logs"`    // directory of the logs in reports
	Reports []string `json:"reports"` // names: of the file's reports, or of one report of all compares
	results.Known
}

// resultFile returns the name in a bundle of a result's file.
func resultFile(key cache.Key, name string) string { return resultsPart + key.String() + "/" + name }

// Blocks counts the blocks whose raw output is among the files of a bundle, by name.
func (d *Document) Blocks(files map[string]string) (n int) {
	for _, node := range d.All() {
		if r := node.Result; r != nil && node.Kind == "trial" && files[resultFile(r.Key, sample.RecordFile)] != "" {
			n++
		}
	}
	return n
}
