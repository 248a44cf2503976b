package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/image/left"
	"github.com/benchgraph/benchgraph/shell"
)

// File is the file name of a Record in the result of an image node. The image itself is in the engine.
const File = left.File

// Record describes an image made by an image node.
type Record struct {
	ID string `json:"id"` // sha256:…, as the engine names it
	// digest of the manifest of the base image; empty: it came from no registry
	Digest string `json:"digest,omitempty"`
	Chain  string `json:"chain"` // SHA-256 of all inputs
	// directory of its Python packages; empty: none
	Site     string          `json:"site,omitempty"`
	Env      []string        `json:"env,omitempty"` // of its configuration, as NAME=value
	Size     int64           `json:"size"`          // bytes
	Packages []shell.Package `json:"packages,omitempty"`
	Steps    json.RawMessage `json:"steps,omitempty"` // for readers
}

// Read reads the record of an image node's result.
func Read(e cache.Entry) (*Record, error) {
	text, err := os.ReadFile(filepath.Join(e.Dir, File))
	if err != nil {
		return nil, err
	}
	rec := &Record{}
	if err := json.Unmarshal(text, rec); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	if rec.ID == "" {
		return nil, errors.New("its record names no image of the engine")
	}
	return rec, nil
}

// ForShell returns the part of the record that commands need.
func (r *Record) ForShell() *shell.Image {
	return &shell.Image{ID: r.ID, Site: r.Site, Env: r.Env, Packages: r.Packages}
}

// Summary returns a summary of an image for people, in lines, from the record of its node.
func Summary(record json.RawMessage) (lines []string) {
	var rec Record
	var steps []stepRecord
	if json.Unmarshal(record, &rec) != nil || rec.ID == "" {
		return nil
	}
	lines = append(lines, fmt.Sprintf("%s, %s", rec.ID, units.BytesSize(float64(rec.Size))))
	if json.Unmarshal(rec.Steps, &steps) == nil {
		for _, s := range steps {
			line := s.What
			if len(s.Versions) > 0 {
				line += ": " + strings.Join(s.Versions, ", ")
			}
			if s.Skipped != "" {
				line += " (" + s.Skipped + ")"
			}
			lines = append(lines, line)
		}
	}
	for _, p := range rec.Packages {
		lines = append(lines, fmt.Sprintf("has %s %s in %s", p.Name, p.Version, filepath.Dir(p.Info)))
	}
	return lines
}
