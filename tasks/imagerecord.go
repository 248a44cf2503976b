package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/sample"
	"github.com/benchgraph/benchgraph/internal/shell"
)

// imageFile is what an image node leaves: what the image is, since the image itself lies in the engine.
const imageFile = "image.json"

// imageRecord is what is known of an image that an image node made.
type imageRecord struct {
	ID       string          `json:"id"`               // sha256:…, as the engine names it
	Digest   string          `json:"digest,omitempty"` // of the manifest of what it was pulled from; empty: it was in no registry
	Chain    string          `json:"chain"`            // SHA-256 of all that it was made from
	Site     string          `json:"site,omitempty"`   // directory in which its Python finds packages; empty: it has none
	Env      []string        `json:"env,omitempty"`    // of its configuration, as NAME=value
	Size     int64           `json:"size"`             // bytes
	Packages []shell.Package `json:"packages,omitempty"`
	Steps    json.RawMessage `json:"steps,omitempty"` // for readers
}

// readImage reads what an image node left.
func readImage(e cache.Entry) (*imageRecord, error) {
	text, err := os.ReadFile(filepath.Join(e.Dir, imageFile))
	if err != nil {
		return nil, err
	}
	rec := &imageRecord{}
	if err := json.Unmarshal(text, rec); err != nil {
		return nil, fmt.Errorf("%s: %w", imageFile, err)
	}
	if rec.ID == "" {
		return nil, errors.New(imageFile + ": has no image ID")
	}
	return rec, nil
}

// shellIn is what commands need to know of the image that an image node left.
func shellIn(e cache.Entry) (*shell.Image, error) {
	rec, err := readImage(e)
	if err != nil {
		return nil, err
	}
	return &shell.Image{ID: rec.ID, Site: rec.Site, Env: rec.Env, Packages: rec.Packages}, nil
}

// Record is what a trial or an image node says of itself beside what it made, as JSON; nil for any other node.
func Record(e cache.Entry) (json.RawMessage, error) {
	for _, name := range []string{sample.RecordFile, imageFile} {
		text, err := os.ReadFile(filepath.Join(e.Dir, name))
		if err == nil && json.Valid(text) {
			return text, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, nil
}

// ImageSummary is what people want to know of an image, a line each, from the record of its node.
func ImageSummary(record json.RawMessage) (lines []string) {
	var rec imageRecord
	var steps []imageStep
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
