// Package transcript records what an attempt runs: each command with its place, and the work of benchgraph itself for
// the commands, in order. The transcript is kept with the log of the attempt and in its entry. It is in no key or
// digest, and contains no value of a secret.
package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Transcript is the record of one attempt. Paths below Work and Scratch no longer exist afterwards.
type Transcript struct {
	Work    string  `json:"work"`    // directory
	Scratch string  `json:"scratch"` // directory; the result was in its subdirectory out
	Inputs  []Input `json:"inputs,omitempty"`
	Places  []Place `json:"places,omitempty"`
	Steps   []Step  `json:"steps"`

	mu      sync.Mutex
	inputs  []engine.Input
	servers map[executor.Process]int // index of the step of each server
	places  map[string]int           // index by the place as JSON
}

// Input is a result whose directory appears in a step.
type Input struct {
	Address string    `json:"address"`
	Key     cache.Key `json:"key"`
	Dir     string    `json:"dir"`
}

// Place is the place of commands, and what they see there.
type Place struct {
	Dir       string           `json:"dir"`
	Env       []string         `json:"env,omitempty"` // NAME=value; only NAME for a secret
	Container *Container       `json:"container,omitempty"`
	Sandbox   *Sandbox         `json:"sandbox,omitempty"` // on the host; nil: none
	Limits    *executor.Limits `json:"limits,omitempty"`  // on the host; nil: none
}

// Sandbox is the part of an executor.Sandbox that makes a difference for a script.
type Sandbox struct {
	Home    string `json:"home"` // directory in the place of the user's home
	Tmp     string `json:"tmp"`  // directory in the place of /tmp
	Network bool   `json:"network,omitempty"`
}

// Container is the part of an executor.Container that a script needs.
type Container struct {
	Image   string           `json:"image"` // ID
	Mounts  []executor.Mount `json:"mounts,omitempty"`
	User    string           `json:"user,omitempty"`
	Caps    []string         `json:"caps,omitempty"`
	CPUs    string           `json:"cpus,omitempty"`
	Memory  int64            `json:"memory,omitempty"` // bytes
	Shm     int64            `json:"shm,omitempty"`    // bytes
	Ulimits map[string]int64 `json:"ulimits,omitempty"`
	GPUs    []string         `json:"gpus,omitempty"`
	Devices []string         `json:"devices,omitempty"`
	Outward bool             `json:"outward,omitempty"`
	Keep    bool             `json:"keep,omitempty"` // becomes an image
}

// Step is one entry of a transcript. It has exactly one of Title, Argv, Did and Stop.
type Step struct {
	Title string `json:"title,omitempty"` // begins a section
	Of    string `json:"of,omitempty"`    // of a Title: address of the section's node; empty: the same as before
	Aside bool   `json:"aside,omitempty"` // of a Title: nobody reads the output of the section's commands

	Argv   []string `json:"argv,omitempty"` // a command in a place
	Place  int      `json:"place,omitempty"`
	Files  []File   `json:"files,omitempty"`  // files that are laid into the container before the command starts
	Beside int      `json:"beside,omitempty"` // has the network of the server in that step, counted from 1
	Server *Ready   `json:"server,omitempty"` // the command runs beside the next steps; nil: its end is awaited

	Did   []string `json:"did,omitempty"`   // work of benchgraph itself: a verb and its arguments, see package repro
	Image string   `json:"image,omitempty"` // ID of the image that Did made

	Stop int `json:"stop,omitempty"` // ends the server of that step, counted from 1
}

// Ready is the check that told that a server was ready.
type Ready struct {
	HTTP string `json:"http,omitempty"` // path of a page
	Log  string `json:"log,omitempty"`  // pattern of a line; without HTTP and Log: an open port
	Port string `json:"port,omitempty"`
}

// File is a file that was laid into a container.
type File struct {
	Path       string `json:"path"` // absolute
	From       string `json:"from,omitempty"`
	Content    []byte `json:"content,omitempty"`
	SHA256     string `json:"sha256,omitempty"` // of a file that is too large to note its content
	Executable bool   `json:"executable,omitempty"`
}

// Of returns the transcript of an attempt.
func Of(env *engine.Env) *Transcript {
	t, ok := env.Transcript.(*Transcript)
	if !ok {
		t = &Transcript{Work: env.Work, Scratch: env.Scratch, inputs: env.Inputs,
			servers: map[executor.Process]int{}, places: map[string]int{}}
		env.Transcript = t
	}
	return t
}

// Section begins a section of a node. aside: nobody reads the output of its commands.
func (t *Transcript) Section(of, title string, aside bool) {
	t.add(Step{Title: title, Of: of, Aside: aside})
}

// Did notes work of benchgraph itself.
func (t *Transcript) Did(words ...string) { t.add(Step{Did: words}) }

// mostContent is the greatest size in bytes of a noted file content.
const mostContent = 256 << 10

// Wrote notes that benchgraph wrote a file.
func (t *Transcript) Wrote(to string, content []byte) {
	if len(content) <= mostContent && utf8.Valid(content) && !bytes.ContainsRune(content, 0) {
		t.Did("text", string(content), to)
	} else {
		t.Did("missing", fmt.Sprintf("%x", sha256.Sum256(content)), to)
	}
}

// Made is Did for work that made an image.
func (t *Transcript) Made(image string, words ...string) { t.add(Step{Did: words, Image: image}) }

// Undo removes the steps since the last image was made, as they had no effect. title says why.
func (t *Transcript) Undo(title string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	made := len(t.Steps)
	for made > 0 && t.Steps[made-1].Image == "" {
		made--
	}
	t.Steps = append(t.Steps[:made], Step{Title: title})
}

// Serves notes that a command is a server.
func (t *Transcript) Serves(p executor.Process, r Ready) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.servers[p]; ok {
		t.Steps[i].Server = &r
	}
}

// Stops notes that a server is ended.
func (t *Transcript) Stops(p executor.Process) {
	t.mu.Lock()
	i, ok := t.servers[p]
	t.mu.Unlock()
	if ok {
		t.add(Step{Stop: i + 1})
	}
}

func (t *Transcript) add(s Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Steps = append(t.Steps, s)
}

// MarshalJSON writes the transcript, with only those inputs whose directories appear in it.
func (t *Transcript) MarshalJSON() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	type plain Transcript
	text, err := json.Marshal((*plain)(t))
	if err != nil || len(t.inputs) == 0 {
		return text, err
	}
	t.Inputs = nil
	for _, in := range t.inputs {
		if dir, err := json.Marshal(in.Dir); err == nil && in.Dir != "" &&
			strings.Contains(string(text), strings.Trim(string(dir), `"`)) {
			t.Inputs = append(t.Inputs, Input{in.Address, in.Key, in.Dir})
		}
	}
	return json.Marshal((*plain)(t))
}

// place returns the index of a place, and adds the place if it is new.
func (t *Transcript) place(p Place) int {
	text, _ := json.Marshal(p)
	i, ok := t.places[string(text)]
	if !ok {
		i = len(t.Places)
		t.Places, t.places[string(text)] = append(t.Places, p), i
	}
	return i
}

// hide returns a function that masks the values of a command's secrets in a text.
func hide(cmd executor.Command) func(string) string {
	var all workdir.Secrets
	for _, value := range cmd.Secrets {
		if value = strings.TrimSpace(value); value != "" {
			all = append(all, workdir.Secret{Value: value})
		}
	}
	return all.Mask
}

func placeOf(cmd executor.Command) Place {
	hidden := hide(cmd)
	p := Place{Dir: cmd.Dir}
	if l := cmd.Limits; l != nil && *l != (executor.Limits{}) {
		p.Limits = l
	}
	for i, v := range cmd.Env {
		name, value, _ := strings.Cut(v, "=")
		if slices.ContainsFunc(cmd.Env[i+1:], func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			continue // the last one counts
		}
		if value != "" && slices.Contains(cmd.Secrets, value) {
			p.Env = append(p.Env, name)
		} else {
			p.Env = append(p.Env, hidden(v))
		}
	}
	if o := cmd.Sandbox; o != nil {
		p.Sandbox = &Sandbox{Home: o.Home, Tmp: o.Tmp, Network: o.Network}
	}
	if c := cmd.Container; c != nil {
		p.Container = &Container{Image: c.Image, Mounts: c.Mounts, User: c.User, Caps: c.Caps, CPUs: c.CPUs,
			Memory: c.Memory, Shm: c.Shm, Ulimits: c.Ulimits, GPUs: c.GPUs, Devices: c.Devices, Outward: c.Outward,
			Keep: c.Keep}
	}
	return p
}

// Parse reads a transcript.
func Parse(text []byte) (*Transcript, error) {
	t := &Transcript{}
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	return t, nil
}
