package sample

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// The most files of $OUT that are searched for a missing metric, and their bytes. Each plan may search them again, and
// a parser takes up to a second for a MiB.
const (
	mostSearched  = 100
	bytesSearched = 2 << 20
)

// elsewhere returns a text about the place of the output in a directory where the primary metric stands, and the
// remedy, if it does not stand where the benchmark reads it; empty texts if no place has it.
func elsewhere(spec hclspec.Metrics, command hclspec.Command, dir string) (text, remedy string) {
	own := slices.IndexFunc(spec.Custom, func(m hclspec.Metric) bool { return m.Name == spec.Primary })
	at := spec.File
	if own >= 0 {
		at = cmp.Or(spec.Custom[own].File, at)
	}
	has := func(name string) bool {
		moved := spec
		moved.Custom = slices.Clone(spec.Custom)
		if moved.File = name; own >= 0 {
			moved.Custom[own].File = name
		}
		result, err := Read(moved, command, dir)
		_, found := metrics.Find(result.Samples, spec.Primary)
		return err == nil && found
	}
	if at != "" && has("") {
		return "standard output has it", "leave out the attribute file of the metrics"
	}
	for _, name := range outputs(dir) {
		if name != at && has(name) {
			return fmt.Sprintf("$OUT has it in %q", name), fmt.Sprintf("read it there, with file = %q", name)
		}
	}
	return "", ""
}

// outputs returns the names of the first files of $OUT that are together short enough to be searched.
func outputs(dir string) (names []string) {
	root, left := os.DirFS(filepath.Join(dir, OutDir)), int64(bytesSearched)
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || len(names) == mostSearched {
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Size() <= left {
			names, left = append(names, name), left-info.Size()
		}
		return nil
	})
	return names
}
