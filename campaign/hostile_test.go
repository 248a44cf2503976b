package campaign_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// Files that a command may leave in $OUT, and the outcome. Nothing may be read from or written to the directory
// OUTSIDE; it has a file "mine".
var leftovers = map[string]struct {
	command, outputs, rule, message string
}{
	"plain":          {"echo a > $OUT/a; mkdir $OUT/d; ln -s ../a $OUT/d/link", "", "", ""},
	"odd names":      {"printf x > \"$OUT/$(printf 'a\\nb\\377\\033[2J')\"", "", "", ""},
	"setuid":         {"echo a > $OUT/a; chmod 6755 $OUT/a", "", "", ""},
	"no permissions": {"mkdir $OUT/d; echo a > $OUT/d/a; chmod 0 $OUT/d/a $OUT/d", "", "", ""},
	"a pipe":         {"echo a > $OUT/a; mkfifo $OUT/pipe", "", "", ""},
	"a matched pipe": {"echo a > $OUT/a; mkfifo $OUT/pipe", "*", "", ""},
	"link outside":   {"ln -s OUTSIDE/mine $OUT/a", "", "link_outside", `$OUT/a is a link to "OUTSIDE/mine"`},
	"link upwards":   {"mkdir $OUT/d; ln -s ../../x $OUT/d/a", "**", "link_outside", "$OUT/d/a is a link"},
	"link by a link": {"ln -s . $OUT/d; ln -s d/../../x $OUT/a", "*", "link_outside", "$OUT/a is a link"},
	"a circle":       {"ln -s a $OUT/a", "", "link_outside", "$OUT/a is a link"},
	"directory": {"ln -s OUTSIDE $OUT/d", "d/*", "unreadable",
		`cannot be searched for "d/*": openat d: path escapes`},
	"$OUT itself":     {"rmdir $OUT; ln -s OUTSIDE $OUT", "*", "not_a_directory", "$OUT is no directory any more"},
	"$OUT is a link":  {"rmdir $OUT; ln -s OUTSIDE $OUT", "", "not_a_directory", "$OUT is no directory any more"},
	"$OUT is gone":    {"rmdir $OUT", "", "not_a_directory", "$OUT is no directory any more"},
	"hard link":       {"ln OUTSIDE/mine $OUT/a", "*", "hard_link", "$OUT/a is a hard link to a file outside"},
	"two of one file": {"echo a > $OUT/a; ln $OUT/a $OUT/b", "*", "", ""},
	"huge and empty":  {"truncate -s 900G $OUT/a", "", "sparse_file", "$OUT/a says that it has 966367641600 bytes"},
	"a deep path": {"cd $OUT; i=0; while [ $i -lt 20 ]; do d=$(printf '%0200d' 0); mkdir $d; cd -P $d; i=$((i+1)); " +
		"done; echo a > a", "",
		"deep_path", "has a path of more than 3500 bytes"},
}

func TestLeftoversOfACommandAreNeverFollowed(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	mine := filepath.Join(outside, "mine")
	must(t, os.WriteFile(mine, []byte("mine"), 0o600))
	var project strings.Builder
	for name, l := range leftovers {
		outputs := ""
		if l.outputs != "" {
			outputs = fmt.Sprintf("  outputs = [%q]\n", l.outputs)
		}
		fmt.Fprintf(&project, "task %q {\n  command = <<-EOT\n    %s\n  EOT\n%s}\n", label(name),
			strings.ReplaceAll(l.command, "OUTSIDE", outside), outputs)
	}
	s := tell(t, map[string]string{"benchmarks.hcl": unguarded + project.String()})
	s.apply()
	ends := map[string]*failure.Failure{}
	for _, e := range s.events {
		switch e.Type {
		case engine.NodeDone:
			ends[e.Address] = &failure.Failure{}
		case engine.NodeFailed:
			ends[e.Address] = e.Failure
		}
	}
	for name, l := range leftovers {
		end := ends["task."+label(name)]
		message := strings.ReplaceAll(l.message, "OUTSIDE", outside)
		switch {
		case end == nil:
			t.Errorf("%s: did not end", name)
		case end.Rule != l.rule || !strings.Contains(end.Message, message) || l.rule != "" &&
			(end.Class != failure.Invalid || end.Remedy == ""):
			t.Errorf("%s: %+v; want %s: %s", name, end, l.rule, l.message)
		}
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("the file outside: %q, %v", text, err)
	}
	if list, _ := os.ReadDir(outside); len(list) != 1 {
		t.Errorf("the directory outside holds %v", list)
	}
	// No stored file has a mode or a kind that a command chose.
	must(t, filepath.WalkDir(filepath.Join(s.dir, ".benchgraph", "store", "entries"),
		func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if odd := info.Mode() &^ (fs.ModePerm | fs.ModeDir | fs.ModeSymlink); err == nil && odd != 0 {
				t.Errorf("%s: %v", path, odd)
			}
			return err
		}))
}

// label makes a name for a block.
func label(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// Devices need root.
func TestADeviceIsRefused(t *testing.T) {
	t.Parallel()
	if err := unix.Mknod(filepath.Join(t.TempDir(), "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); errors.Is(err,
		fs.ErrPermission) {
		t.Skip("devices cannot be made here")
	}
	s := tell(t, map[string]string{"benchmarks.hcl": unguarded + `
task "a" { command = "mknod $OUT/zero c 1 5" }
`})
	applied := s.apply()
	if len(applied.Result.Failures) != 1 || applied.Result.Failures[0].Failure.Rule != "device" {
		t.Errorf("%+v", applied.Result.Failures)
	}
}

// Only the output of the measured command counts: not that of its server, not its standard error, no file that looks
// like one of ours, and nothing that somebody writes into the file with its output.
func TestOnlyTheClientsOutputIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command, rule string
		want          float64
	}{
		"honest": {"echo 'work done: 3'; echo 'work done: 7' >&2; echo '[{\"metric\": \"items\", \"value\": 8}]' " +
			"> $OUT/samples.json; cp $OUT/samples.json $OUT/record.json", "", 3},
		"appended": {"echo 'work done: 3'; echo 'and then the work done: 9' >> $OUT/../stdout", "foreign_output", 0},
		"replaced": {"echo 'work done: 3'; rm $OUT/../stdout; echo 'work done: 9' > $OUT/../stdout", "foreign_output",
			0},
		"a pipe": {"echo 'work done: 3'; rm $OUT/../stdout; mkfifo $OUT/../stdout", "foreign_output", 0},
		"a link": {"echo 'work done: 3'; rm $OUT/../stdout; ln -s /etc/passwd $OUT/../stdout", "link_outside", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t, map[string]string{"benchmarks.hcl": unguarded + fmt.Sprintf(`
benchmark "b" {
  command = <<-EOT
    %s
  EOT
  server {
    command = "echo 'work done: 5'; echo ready; sleep 60"
    ready { log = "ready" }
  }
  design { samples = 1 }
  metrics {
    metric "items" { match = "work done: ([0-9]+)" }
  }
}
`, c.command)})
			applied := s.apply()
			if c.rule != "" {
				if f := applied.Result.Failures; len(f) != 1 || f[0].Failure.Rule != c.rule ||
					f[0].Failure.Class != failure.Invalid {
					t.Errorf("%+v, want %s", f, c.rule)
				}
				return
			}
			var got []any
			for _, e := range s.events {
				if e.Type == engine.SampleTaken {
					got = append(got, e.Data["value"])
				}
			}
			if len(got) != 1 || got[0] != c.want || applied.Result.Failed != 0 {
				t.Errorf("%v, %+v", got, applied.Result.Failures)
			}
		})
	}
}
