package remote

import (
	"encoding/json"
	"fmt"
	"io"
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
	State    string   `json:"state"` // directory, likewise
	Store    string   `json:"store"` // directory, likewise
	Vars     []string `json:"vars,omitempty"`
	VarFiles []Given  `json:"var_files,omitempty"`
	Environ  []string `json:"environ,omitempty"` // variables of the file's variables, as NAME=value
	Allow    []string `json:"allow,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"` // of the command line
	Machine  string   `json:"machine"`           // name of the machine block for which the graph is planned
	Confines string   `json:"confines"`          // how the machine with the project confines what it makes
	WorkDir  string   `json:"work_dir,omitempty"`
	Aside    *Aside   `json:"aside,omitempty"` // nil: what the file declares is measured

	Shared hclspec.Store `json:"shared"` // with the snapshot, the inputs and the result
}

// Aside is what a command has measured that the file does not declare: a candidate, or baselines against themselves.
type Aside struct {
	Try       *hclspec.Try `json:"try,omitempty"`       // nil: baselines
	Benchmark string       `json:"benchmark,omitempty"` // that measures the candidate
	Noise     []string     `json:"noise,omitempty"`     // which baselines, as arguments of noise
}

// Given is a file of variables.
type Given struct {
	Name string `json:"name"` // its end says how the file is read
	Text []byte `json:"text"`
}

// ReadGiven reads files of variables. What is wrong with one of them is told where it is used.
func ReadGiven(names []string) (all []Given) {
	for _, name := range names {
		text, _ := os.ReadFile(name)
		all = append(all, Given{filepath.Base(name), text})
	}
	return all
}

// Chosen are the variables of an environment whose names have a prefix or are listed, as NAME=value; sorted.
func Chosen(environ map[string]string, prefix string, listed []string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		if strings.HasPrefix(name, prefix) || slices.Contains(listed, name) {
			all = append(all, name+"="+environ[name])
		}
	}
	return all
}

// Request is one node that a worker is to run. Variables may be secret, so that a request goes to the worker alone.
type Request struct {
	Project
	Owner    string          `json:"owner"` // name of the project among those that share the store
	Round    string          `json:"round"` // in which the result is made again; "": there is none
	Run      string          `json:"run"`   // ID of the apply that submitted the job
	Address  string          `json:"address"`
	Key      cache.Key       `json:"key"`      // that the worker must find the node under
	Snapshot cache.Key       `json:"snapshot"` // of the entry with the project
	Choice   json.RawMessage `json:"choice"`   // from which the graph was made, see campaign.Project.Part
	Login    *bucket.Login   `json:"login"`    // for the shared store; nil: the worker has its own
	Named    []string        `json:"named"`    // paths that must be there: commands of the node name them by abspath
	Literal  []string        `json:"literal"`  // other absolute paths that they name, and that are there
	// of objects that stand for entries, by key: the result that is made again, and inputs of which the shared store
	// has other results
	Names map[cache.Key]string `json:"names"`
}

// maxFile bounds the counts and outcomes that are read, in bytes.
const maxFile = 64 << 20

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return fs.Replace(path, append(text, '\n'))
}

// readJSON reads a file that another process of this user wrote. What somebody else has put there would be run.
func readJSON(path string, v any) error {
	f, info, err := fs.OpenOwn(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > maxFile {
		return fmt.Errorf("%s is no file that benchgraph wrote", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
