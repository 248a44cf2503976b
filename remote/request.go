package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Names of the files in the directory of a job.
const (
	requestFile = "request.json"
	outcomeFile = "outcome.json"
	outputFile  = "output"    // standard output and error of the job
	jobsFile    = "jobs.json" // how many jobs were submitted since an apply saw the end of one
)

// Project says how a project was opened, so that a worker opens it in the same way.
type Project struct {
	Version  string   `json:"benchgraph"` // of the program
	Dir      string   `json:"dir"`        // absolute
	File     string   `json:"file,omitempty"`
	State    string   `json:"state"` // directory with the mirrors
	Store    string   `json:"store"` // directory
	Vars     []string `json:"vars,omitempty"`
	VarFiles []string `json:"var_files,omitempty"`
	Environ  []string `json:"environ,omitempty"` // variables of the file's variables, as NAME=value
	Allow    []string `json:"allow,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"` // of the command line
	Machine  string   `json:"machine"`           // name of the machine block for which the graph is planned
	Confines string   `json:"confines"`          // how the machine with the project confines what it makes
}

// Request is one node that a worker is to run. Its directory is open to the user alone, since variables may be secret.
type Request struct {
	Project
	Host    string          `json:"host"` // name of the machine that submitted the job
	Run     string          `json:"run"`  // ID of the apply that submitted the job
	Address string          `json:"address"`
	Key     cache.Key       `json:"key"`    // that the worker must find the node under
	Choice  json.RawMessage `json:"choice"` // from which the graph was made, see campaign.Project.Part
}

// Outcome is how a worker ended.
type Outcome struct {
	Job     string           `json:"job"`               // ID, so that the outcome of an earlier job does not count
	Seconds float64          `json:"seconds"`           // for which the worker ran
	Failure *failure.Failure `json:"failure,omitempty"` // nil: the result is in the shared store
}

// maxRequest bounds the files of a job that are read, in bytes.
const maxRequest = 64 << 20

// ReadRequest reads what a job is to run.
func ReadRequest(dir string) (*Request, error) {
	r := &Request{}
	if err := readJSON(filepath.Join(dir, requestFile), r); err != nil {
		return nil, err
	}
	if r.Address == "" || r.Dir == "" || r.Key.IsZero() {
		return nil, errors.New(requestFile + " names no project, node or key")
	}
	return r, nil
}

// WriteOutcome leaves the outcome of a job in its directory.
func WriteOutcome(dir string, o Outcome) error {
	return writeJSON(filepath.Join(dir, outcomeFile), o)
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return fs.Replace(path, append(text, '\n'))
}

// readJSON reads a file that a program on another machine wrote.
func readJSON(path string, v any) error {
	f, info, err := cache.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > maxRequest {
		return fmt.Errorf("%s is no file that benchgraph wrote", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRequest))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Link links into the state of a worker the parts of the project's state that are costly to make anew.
func Link(state, own string) error {
	names := []string{"history", "preflight"}
	for _, dir := range []string{"mirrors", "answers"} {
		entries, err := os.ReadDir(filepath.Join(state, dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			names = append(names, filepath.Join(dir, e.Name()))
		}
		if err := os.MkdirAll(filepath.Join(own, dir), 0o700); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := os.Symlink(filepath.Join(state, name), filepath.Join(own, name))
		if err != nil && !errors.Is(err, os.ErrExist) { // another job of the node may have been here
			return err
		}
	}
	return nil
}
