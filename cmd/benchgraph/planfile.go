package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// planFile is the document that plan -out writes and apply reads: the flags of the plan, and its nodes.
type planFile struct {
	Format   string    `json:"format"`
	Type     string    `json:"type"`
	Version  string    `json:"version"`
	Project  string    `json:"project"` // root file, absolute
	Select   selection `json:"select"`
	Allow    cli.List  `json:"allow_mismatch,omitempty"`
	Machine  string    `json:"machine,omitempty"` // planned for: name in the file, or absolute path
	Upgrade  bool      `json:"upgrade,omitempty"`
	Sandbox  string    `json:"sandbox,omitempty"` // the word of -sandbox
	Vars     cli.List  `json:"vars,omitempty"`
	VarFiles cli.List  `json:"var_files,omitempty"`
	view.Outline
}

const planFileType = "plan"

func writePlanFile(path string, s *session, sel *selection, allow cli.List, p *engine.Plan,
	outline view.Outline) error {
	for i := range p.Steps { // in the order of the outline
		outline.Nodes[i].Follows = s.outcome(&p.Steps[i])
	}
	f := planFile{
		Format: view.Format, Type: planFileType, Version: version, Select: *sel, Allow: allow,
		Project: filepath.Join(s.dir, s.project.Spec.Files[0]), Upgrade: s.project.Upgrade, Vars: s.vars,
		Sandbox: s.project.Sandbox,
		Outline: outline,
	}
	if f.Machine = s.machine; f.Machine != "" && !slices.ContainsFunc(s.project.Spec.Machines,
		func(m hclspec.Machine) bool {
			return m.Address.Name == f.Machine
		}) {
		full, err := filepath.Abs(s.below(f.Machine))
		if err != nil {
			return err
		}
		f.Machine = full
	}
	for _, name := range s.varFiles {
		full, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		f.VarFiles = append(f.VarFiles, full)
	}
	var b bytes.Buffer
	if err := view.JSON(&b, f); err != nil {
		return err
	}
	if err := fs.Replace(path, b.Bytes()); err != nil {
		return hint("Write it to a file of a directory that is there: -out=FILE.", "plan file %s: %w", path,
			fs.Cause(err))
	}
	return nil
}

func readPlanFile(path string) (*planFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, hint("Make one with benchgraph plan -out=FILE.", "plan file %s: %w", path, fs.Cause(err))
	}
	return parsePlanFile(path, text)
}

func parsePlanFile(path string, text []byte) (*planFile, error) {
	f := &planFile{}
	if err := json.Unmarshal(text, f); err != nil || f.Type != planFileType {
		return nil, hint("Make one with benchgraph plan -out=FILE.", "%s is not a plan file", path)
	}
	if f.Format != view.Format {
		return nil, hint("Make a new one with benchgraph plan -out=FILE.",
			"plan file %s has format %q, this is format %q", path, f.Format, view.Format)
	}
	return f, nil
}

// flags returns the flags of the plan as text.
func (f *planFile) flags() string {
	var b strings.Builder
	for _, list := range []struct {
		flag   string
		values []string
	}{
		{"target", f.Select.Targets}, {"exclude", f.Select.Excludes}, {"replace", f.Select.Replaces},
		{"allow-mismatch", f.Allow}, {"var", f.Vars}, {"var-file", f.VarFiles},
	} {
		for _, value := range list.values {
			fmt.Fprintf(&b, " -%s=%s", list.flag, value)
		}
	}
	if f.Machine != "" {
		b.WriteString(" -machine=" + f.Machine)
	}
	if f.Select.RetryFailed {
		b.WriteString(" -retry-failed")
	}
	if f.Upgrade {
		b.WriteString(" -upgrade")
	}
	if f.Sandbox != "" {
		b.WriteString(" -sandbox=" + f.Sandbox)
	}
	return b.String()
}

// outcome returns the ID of the attempt before the run of a step: the attempt that made the result to be replaced, or
// the one that failed; "" if there is none.
func (s *session) outcome(st *engine.Step) string {
	for _, a := range slices.Backward(s.journal.Attempts(st.Node.Address)) {
		if a.Key == st.Key && st.Action == engine.Run && (a.Failure == nil || !a.Failure.Class.Retried()) {
			return a.ID
		}
	}
	return ""
}

// check makes sure that a plan made now equals that in the file.
func (f *planFile) check(p *engine.Plan, outcome func(*engine.Step) string) error {
	planned := make(map[string]view.Planned, len(f.Nodes))
	for _, n := range f.Nodes {
		planned[n.Address] = n
	}
	var differences []string
	for i := range p.Steps {
		st := &p.Steps[i]
		n, ok := planned[st.Node.Address]
		switch {
		case !ok:
			differences = append(differences, st.Node.Address+" is new")
		case n.Key != st.Key:
			differences = append(differences, fmt.Sprintf("%s has changed: key %s → %s (%s)", st.Node.Address,
				n.Key.Short(), st.Key.Short(), st.Reason))
		case n.Action != st.Action:
			differences = append(differences, fmt.Sprintf("%s is %s now, and was %s (%s)", st.Node.Address, st.Action,
				n.Action, st.Reason))
		case n.Follows != outcome(st):
			differences = append(differences, st.Node.Address+" has been run since")
		}
		delete(planned, st.Node.Address)
	}
	for _, name := range sortedKeys(planned) {
		differences = append(differences, name+" is gone")
	}
	if len(differences) > 0 {
		return &stalePlanError{Differences: differences}
	}
	return nil
}

// stalePlanError reports that a plan file no longer holds.
type stalePlanError struct{ Differences []string }

func (e *stalePlanError) Error() string {
	shown := e.Differences[:min(len(e.Differences), 3)]
	return fmt.Sprintf("the plan is stale: %s", strings.Join(shown, "; "))
}
