//go:build linux && faults

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// loud is how many bytes the loud commands print: twice the memory that benchgraph may use.
const loud = 512 << 20

// outputs are outputs of foreign commands: shell text that prints each one, and then a number of a metric as the last
// line.
var outputs = map[string]struct {
	print string
	bytes int64 // at least so much is in the log
}{
	"many lines": {"yes 'a line that is not the metric, but is looked at as if it could be' | head -c " +
		"536870912; echo", loud},
	"one line, as long": {"head -c 536870912 /dev/zero | tr '\\\\0' x; echo", loud},
	"zeros":             {"head -c 67108864 /dev/zero; echo", 64 << 20},
	"no text":           {"head -c 1000000 /dev/urandom; printf '\\\\377\\\\376\\\\000\\\\033[2J\\\\n'", 1000000},
	"no end of line":    {"printf 'no end'; echo", 6},
}

// TestFaultOutput lets tasks and benchmarks print unexpected output: the log is complete, the memory is bounded, and
// later output is still understood.
func TestFaultOutput(t *testing.T) {
	for name, o := range outputs {
		for _, kind := range []string{"task", "failing", "benchmark"} {
			if kind == "task" && o.bytes == loud {
				continue // a failing one does all that it does
			}
			t.Run(name+" of a "+kind, func(t *testing.T) {
				what, code := fmt.Sprintf(`
task "loud" { command = "%s; printf 'speed: 42.5'" }
`, o.print), 0
				switch kind {
				case "failing":
					what, code = fmt.Sprintf(`
task "loud" { command = "%s; echo 'the last line'; exit 3" }
`, o.print), 3
				case "benchmark":
					// Its output is read twice, line by line: half of it also shows that the memory does not grow with
					// it.
					o.print, o.bytes = strings.ReplaceAll(o.print, "536870912", "268435456"), min(o.bytes, loud/2)
					what = fmt.Sprintf(`
commit "c" {}
variant "one" { baseline = true }
benchmark "loud" {
  for_each = candidates
  command  = "%s; printf 'speed: 42.5'"
  design { samples = 1 }
  metrics {
    primary = "speed"
    metric "speed" {
      match  = "^speed: ([0-9.]+)$"
      better = "higher"
    }
  }
}
`, o.print)
				}
				w := newWorld(t, what)
				w.patience = 10 * time.Minute // where others work, too, this takes some
				r := w.run("apply")
				r.exits(t, code)
				if code == 3 {
					r.says(t, "the last line")
				}
				const most = 256 << 20
				if rss := r.state.SysUsage().(*syscall.Rusage).Maxrss << 10; rss > most {
					t.Errorf("benchgraph used %d MiB of memory", rss>>20)
				}
				logs, err := filepath.Glob(w.path(".benchgraph/logs/*"))
				check(t, err)
				var longest int64
				for _, l := range logs {
					if info, err := os.Stat(l); err == nil {
						longest = max(longest, info.Size())
					}
				}
				if longest < o.bytes {
					t.Errorf("the log has %d bytes of %d", longest, o.bytes)
				}
				address := "task.loud"
				if kind == "benchmark" {
					address = `benchmark.loud["c/one"]`
					if shown := w.must(0, "show", address); !strings.Contains(shown.stdout, "42.5") {
						t.Errorf("no sample: %s", shown.stdout)
					}
				}
				for _, args := range [][]string{{"show", address}, {"explain", address}, {"status"}} {
					shown := w.must(0, args...)
					if text := shown.stdout + shown.stderr; strings.ContainsAny(text, "\x00\x1b") ||
						!utf8.ValidString(text) {
						t.Errorf("%q shows what is no text", args)
					}
				}
			})
		}
	}
}
