// Package bundle collects a project, its results and its reports in one file, and reads such files.
//
// A bundle is a tar in gzip. The same files make the same bytes. Its last file is an in-toto statement whose subjects
// are the other files. Bundles come from strangers: the reader bounds sizes, checks digests before use, and writes
// below one directory.
package bundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// StatementFile is the name of the statement in a bundle.
const StatementFile = "statement.json"

// The types of the statement of a bundle: see docs/bundle.md.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://github.com/benchgraph/benchgraph/bundle/v1"
)

// Statement is an in-toto statement, version 1, about the files of a bundle.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is one file with its digest.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // sha256: in hexadecimal digits
}

// Predicate has the data of a bundle's statement, beside the digests.
type Predicate struct {
	Format     string `json:"format"`
	Benchgraph string `json:"benchgraph"` // version
	File       string `json:"file"`       // the root file of the project
	Snapshot   string `json:"snapshot"`   // of the report
}

// encode returns the file of a statement about files with these digests.
func encode(digests map[string]string, p Predicate) ([]byte, error) {
	s := Statement{Type: StatementType, PredicateType: PredicateType, Predicate: p, Subject: []Subject{}}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		s.Subject = append(s.Subject, Subject{name, map[string]string{"sha256": digests[name]}})
	}
	text, err := json.MarshalIndent(s, "", " ")
	return append(text, '\n'), err
}

// differences returns the differences between the statement and the files, one a line.
func (s *Statement) differences(digests map[string]string) []string {
	var all []string
	if s.Type != StatementType || s.PredicateType != PredicateType {
		all = append(all, fmt.Sprintf("%s is a %.80q about a %.80q, not a %q about a %q", StatementFile, s.Type,
			s.PredicateType, StatementType, PredicateType))
	}
	listed := map[string]bool{}
	for _, subject := range s.Subject {
		has, want := digests[subject.Name], subject.Digest["sha256"]
		switch {
		case listed[subject.Name]:
			all = append(all, fmt.Sprintf("%q stands twice in %s", subject.Name, StatementFile))
		case has == "":
			all = append(all, fmt.Sprintf("%q is missing: %s has it", subject.Name, StatementFile))
		case has != want:
			all = append(all, fmt.Sprintf("%q has the SHA-256 %s, and %s says %.64s", subject.Name, has, StatementFile,
				cmp.Or(want, "nothing")))
		}
		listed[subject.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		if !listed[name] {
			all = append(all, fmt.Sprintf("%q is not in %s", name, StatementFile))
		}
	}
	return all
}
