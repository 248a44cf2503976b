package sample

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/stated"
)

// Names under which outputs count the characters in the answers of a server, and the answers without any.
const (
	Characters   = "generated_characters"
	EmptyAnswers = "empty_answers"
)

// statement reads the settings and amounts that the outputs of one lifecycle state: its standard output, the files with
// metrics, and other result files of the client.
func statement(spec hclspec.Metrics, dir string) (stated.Statement, error) {
	var all stated.Statement
	out := filepath.Join(dir, OutDir)
	addFile := func(name string, counts bool, open func() (*os.File, error)) error {
		f, err := open()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return err
		}
		one, err := stated.Read(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !counts {
			maps.DeleteFunc(one.Counts, func(name string, _ float64) bool { // no printed table has these counts
				return name != Characters && name != EmptyAnswers
			})
		}
		all.Merge(one)
		return nil
	}
	files := readFiles(spec)
	for _, name := range files {
		if err := addFile(name, true, func() (*os.File, error) { return os.OpenInRoot(out, name) }); err != nil {
			return all, err
		}
	}
	if err := addFile(StdoutFile, true, func() (*os.File, error) {
		return os.Open(filepath.Join(dir, StdoutFile))
	}); err != nil {
		return all, err
	}
	for _, name := range resultFiles(out) {
		if slices.Contains(files, name) {
			continue
		}
		if err := addFile(name, false, func() (*os.File, error) { return os.OpenInRoot(out, name) }); err != nil {
			return all, err
		}
	}
	return all, nil
}

// readFiles returns the files of $OUT that metrics are read from.
func readFiles(spec hclspec.Metrics) []string {
	var files []string
	for _, c := range spec.Custom {
		files = append(files, c.File)
	}
	files = append(files, spec.File)
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(name string) bool { return name == "" })
}

// mostResultFiles bounds the files of $OUT that are read although no metric is in them.
const mostResultFiles = 16

// resultFiles returns the JSON files at the top of $OUT.
func resultFiles(out string) []string {
	var files []string
	entries, err := os.ReadDir(out)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.Type().IsRegular() && (ext == ".json" || ext == ".jsonl") &&
			len(files) < mostResultFiles {
			files = append(files, e.Name())
		}
	}
	return files
}

// named returns settings in which names replace the paths of this lifecycle.
func (m *Member) named(settings map[string]string) map[string]string {
	named := make(map[string]string, len(settings))
	for name, text := range settings {
		values := strings.Split(text, "; ")
		for i, value := range values {
			values[i] = m.place(value)
		}
		named[name] = strings.Join(values, "; ")
	}
	return named
}

// place returns a path as the file of the project would write it; any other text stays as it is.
func (m *Member) place(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	for _, p := range m.Places {
		if rest, ok := strings.CutPrefix(path, p.Value); ok && (rest == "" || rest[0] == '/') {
			return p.Name + rest
		}
	}
	if len(m.Places) == 0 { // an earlier version measured it: the working directory may be a part of the path
		return filepath.Base(path)
	}
	return path
}
