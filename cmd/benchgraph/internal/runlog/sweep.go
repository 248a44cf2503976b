package runlog

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
)

// Swept is what Sweep removed, or would remove.
type Swept struct {
	Files int
	Bytes int64
}

// Sweep removes, or with DryRun only counts, the logs and transcripts of attempts and the events of applies in a state
// directory that are older than MaxAge; without limits, all. The logs of named attempts and of remembered failures
// stay, and the events of the last apply that ran something. So does a file that is younger than UseGrain: another
// apply may be writing to it.
func Sweep(state string, named map[string]bool, o cache.GCOptions) (swept Swept, err error) {
	if o.MaxAge == 0 && o.MaxBytes > 0 {
		return swept, nil
	}
	j, err := journal.Open(filepath.Join(state, "journal"))
	if err != nil {
		return swept, err
	}
	for _, id := range j.FailureLogs() {
		named[id] = true
	}
	if err := j.Close(); err != nil { // it could not be read
		return swept, err
	}
	logs, runs := filepath.Join(state, "logs"), filepath.Join(state, "runs")
	last := ""
	if attempts := LastAttempts(runs); len(attempts) > 0 {
		last = attempts[0].Run
	}
	for _, dir := range []string{logs, runs} {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			name := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
			info, err := f.Info()
			if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) <= max(o.MaxAge, cache.UseGrain) ||
				dir == logs && named[name] || dir == runs && name >= last {
				continue
			}
			if o.DryRun || os.Remove(filepath.Join(dir, f.Name())) == nil {
				swept.Files++
				swept.Bytes += info.Size()
			}
		}
	}
	return swept, nil
}
