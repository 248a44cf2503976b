package remote

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Project says how a project was opened, so that a worker opens it in the same way.
type Project struct {
	Version  string   `json:"benchgraph"` // of the program
	Dir      string   `json:"dir"`        // absolute, on the machine of the project
	File     string   `json:"file,omitempty"`
	State    string   `json:"state"` // directory on that machine
	Store    string   `json:"store"` // directory on that machine
	Vars     []string `json:"vars,omitempty"`
	VarFiles []Given  `json:"var_files,omitempty"`
	Environ  []string `json:"environ,omitempty"` // variables and secrets of the file, as NAME=value
	Allow    []string `json:"allow,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"` // of the command line
	Machine  string   `json:"machine"`           // name of the machine block to plan for
	Confines string   `json:"confines"`          // how the machine with the project confines its builds
	WorkDir  string   `json:"work_dir,omitempty"`
	Aside    *Aside   `json:"aside,omitempty"` // nil: the candidates of the file are measured

	Shared hclspec.Store `json:"shared"` // the store with the snapshot, the inputs and the result
}

// Aside is what a command measures beside the file: a candidate of a try, or baselines against themselves.
type Aside struct {
	Try       *hclspec.Try `json:"try,omitempty"`       // nil: baselines
	Benchmark string       `json:"benchmark,omitempty"` // measures the candidate
	Noise     []string     `json:"noise,omitempty"`     // selects baselines, as arguments of noise
}

// Given is a file of variables.
type Given struct {
	Name string `json:"name"` // its suffix says how the file is read
	Text []byte `json:"text"`
}

// ReadGiven reads files of variables. A file that cannot be read is empty here; its error shows where the file is used.
func ReadGiven(names []string) (all []Given) {
	for _, name := range names {
		text, _ := os.ReadFile(name)
		all = append(all, Given{filepath.Base(name), text})
	}
	return all
}

// Chosen returns the variables of an environment whose names have the prefix or are listed, as NAME=value; sorted.
func Chosen(environ map[string]string, prefix string, listed []string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		if strings.HasPrefix(name, prefix) || slices.Contains(listed, name) {
			all = append(all, name+"="+environ[name])
		}
	}
	return all
}

// Request is the node that a worker must run. Variables may be secret, so a request goes only to its worker.
type Request struct {
	Project
	Owner    string          `json:"owner"` // name of the project among those that share the store
	Round    string          `json:"round"` // of the result that is made again; "": none is
	Run      string          `json:"run"`   // ID of the apply that submitted the job
	Address  string          `json:"address"`
	Key      cache.Key       `json:"key"`      // the key that the node must have on the worker
	Snapshot cache.Key       `json:"snapshot"` // key of the entry with the project
	Choice   json.RawMessage `json:"choice"`   // the choice of the graph, see campaign.Project.Part
	Login    *bucket.Login   `json:"login"`    // for the shared store; nil: the worker has its own
	Named    []string        `json:"named"`    // paths that must exist: commands of the node name them by abspath
	Literal  []string        `json:"literal"`  // other absolute paths that commands name, and that exist
	// names of objects in place of entries, by key: for the result that is made again, and for inputs of which the
	// shared store has other results
	Names map[cache.Key]string `json:"names"`
	// digests of the inputs, by key: whoever can write to the shared store cannot write the request
	Digests map[cache.Key]string `json:"digests"`
}

// maxFile bounds the bytes of a count or an outcome that is read.
const maxFile = 64 << 20

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return fs.Replace(path, append(text, '\n'))
}

// readJSON reads a file that a process of this user wrote. It refuses a file of another user, whose content would be
// run.
func readJSON(path string, v any) error {
	f, _, err := fs.OpenOwn(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := fs.ReadAll(f, maxFile)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
