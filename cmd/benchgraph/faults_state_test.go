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
)

// TestFaultState damages files beside the results. Memory that only saves time may be lost, with a warning. A file that
// cannot be read at all is refused, with a remedy. No command waits.
func TestFaultState(t *testing.T) {
	garbage := func(path string) { overwrite(t, path, strings.Repeat("\x00\xff no such thing\n", 100)) }
	pipe := func(path string) { check(t, os.RemoveAll(path), syscall.Mkfifo(path, 0o644)) }
	dir := func(path string) { check(t, os.RemoveAll(path), os.Mkdir(path, 0o755)) }
	gone := func(path string) { check(t, os.RemoveAll(path)) }
	half := func(path string) {
		info, err := os.Stat(path)
		check(t, err, os.Truncate(path, info.Size()/2))
	}
	link := func(path string) { check(t, os.Rename(path, path+".away"), os.Symlink(path+".away", path)) }
	for _, c := range []struct {
		what, file string
		do         func(path string)
		code       int
		says       string
	}{
		{"garbage", "journal", garbage, 0, "2 cached"}, // nobody asked it anything; doctor does
		{"half", "journal", half, 0, "2 cached"},
		{"gone", "journal", gone, 0, ""},
		{"pipe", "journal", pipe, 1, "it is no regular file: move it away"},
		{"dir", "journal", dir, 1, "it is no regular file: move it away"},
		{"link", "journal", link, 1, "it is no regular file: move it away"},
		{"pipe", "journal.lock", pipe, 1, "it is no regular file: move it away"},
		{"garbage", "stat", garbage, 0, "2 cached"}, // files that were written just now are read in any case
		{"half", "stat", half, 0, "2 cached"},
		{"gone", "stat", gone, 0, ""},
		{"pipe", "stat", pipe, 0, "2 cached"},
		{"dir", "stat", dir, 0, "2 cached"},
		{"garbage", "apply.lock", garbage, 0, ""},
		{"gone", "apply.lock", gone, 0, ""},
		{"pipe", "apply.lock", pipe, 1, "it is no regular file: move it away"},
		{"dir", "apply.lock", dir, 1, "it is no regular file: move it away"},
		{"garbage", "../benchgraph.lock.hcl", garbage, 1, "benchgraph.lock.hcl"},
		{"pipe", "../benchgraph.lock.hcl", pipe, 1, "no regular file"},
		{"dir", "../benchgraph.lock.hcl", dir, 1, "no regular file"},
		{"pipe", "../benchmarks.hcl", pipe, 1, "is not a regular file"},
		{"garbage", "store/format", garbage, 0, "its file format was damaged"},
		{"gone", "store/format", gone, 0, "its file format was missing"},
		{"pipe", "store/format", pipe, 1, "no regular file"},
		{"pipe", "store/lock", pipe, 1, "it is no regular file: move it away"},
		{"gone", "store/entries", gone, 0, "2 done"},
		{"gone", "store/content", gone, 0, "2 cached"},
		{"gone", "store/quarantine", gone, 0, "2 cached"},
		{"gone", "store/tmp", gone, 0, "2 cached"},
		{"gone", "logs", gone, 0, "2 cached"},
		{"gone", "runs", gone, 0, "2 cached"},
		{"pipe", "store/quarantine", pipe, 1, "in its place: move it away"},
		{"pipe", "store/entries", pipe, 1, "in its place: move it away"},
		{"link", "store/entries", link, 1, "in its place: move it away"},
		{"link", "store/content", link, 1, "in its place: move it away"},
		{"link", "store/tmp", link, 1, "in its place: move it away"},
		{"pipe", "mirrors", pipe, 1, "in its place: move it away"},
	} {
		t.Run(c.what+" "+c.file, func(t *testing.T) {
			t.Parallel()
			w := stored(t)
			old := time.Now().Add(-time.Hour)
			if c.file == "../benchgraph.lock.hcl" {
				w.write("benchgraph.lock.hcl", "")
			}
			check(t, os.Chtimes(w.path("in"), old, old))
			path := w.path(".benchgraph", c.file)
			if c.file == "stat" && !exists(path) {
				w.write(".benchgraph/stat", "benchgraph stat cache 2 00000000\nand its bytes")
			}
			writable(t, w.path(".benchgraph", "store"))
			c.do(path)
			w.must(c.code, "apply").says(t, c.says)
			w.run("plan")
			w.run("status")
			w.run("cache", "ls")
			if c.what+c.file == "garbagejournal" {
				w.run("doctor").says(t, "100 damaged records")
			}
		})
	}
}

// TestFaultContentLink damages the link that finds a result by its inputs' bytes: the node then runs.
func TestFaultContentLink(t *testing.T) {
	for what, do := range map[string]func(path string){
		"gone":      func(path string) { check(t, os.Remove(path)) },
		"elsewhere": func(path string) { check(t, os.Remove(path), os.Symlink("/etc/passwd", path)) },
		"another":   func(path string) { check(t, os.Remove(path), os.Symlink(strings.Repeat("0", 64), path)) },
		"file":      func(path string) { check(t, os.Remove(path), os.WriteFile(path, []byte("x"), 0o644)) },
		"pipe":      func(path string) { check(t, os.Remove(path), syscall.Mkfifo(path, 0o644)) },
		"dir":       func(path string) { check(t, os.Remove(path), os.MkdirAll(path+"/x", 0o755)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `
task "made" {
  inputs  = ["in"]
  command = "wc -l < in > $OUT/lines"
}
task "user" {
  data    = { "lines" = task.made }
  command = "cat lines > $OUT/lines"
}`)
			w.write("in", "a\n")
			w.must(0, "apply")
			links, err := filepath.Glob(w.path(".benchgraph/store/content/*/*"))
			check(t, err)
			if len(links) != 1 { // what needs nothing is found by its key alone
				t.Fatalf("links are %q", links)
			}
			for _, l := range links {
				do(l)
			}
			w.write("in", "b\n") // task.made comes to the same bytes
			w.must(0, "apply").says(t, "2 done")
			w.write("in", "c\n")
			w.must(0, "apply").says(t, "1 done, 1 cached") // by the new link
		})
	}
}

// TestFaultForeign refuses files that others can write to, with a remedy, since their content would be believed.
func TestFaultForeign(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	const stranger = 4321
	for _, dir := range []string{".benchgraph", ".benchgraph/mirrors", ".benchgraph/store", ".benchgraph/store/entries",
		".benchgraph/store/content", ".benchgraph/store/tmp", ".benchgraph/store/quarantine"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			w := stored(t)
			check(t, os.MkdirAll(w.path(dir), 0o755))
			for _, args := range [][]string{{"plan"}, {"apply"}, {"cache", "verify"}} {
				check(t, os.Chmod(w.path(dir), 0o777))
				w.must(1, args...).says(t, "others can write to it (mode 0777)", "chmod -R go-w")
				check(t, os.Chmod(w.path(dir), 0o755), os.Chown(w.path(dir), stranger, -1))
				w.must(1, args...).says(t, fmt.Sprintf("it belongs to user %d, not to you (0)", stranger), "chown -R 0")
				check(t, os.Chown(w.path(dir), 0, -1))
			}
			w.must(0, "apply").says(t, "2 cached")
		})
	}
	for _, file := range []string{"journal", "store/format"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := stored(t)
			path := w.path(".benchgraph", file)
			if !exists(path) {
				w.write(".benchgraph/"+file, "")
			}
			check(t, os.Chown(path, stranger, -1))
			w.run("apply").says(t, "it belongs to user 4321, not to you (0)")
		})
	}
	t.Run("an entry", func(t *testing.T) {
		t.Parallel()
		w := stored(t)
		check(t, os.Chown(w.entry("task.made")+"/meta", stranger, -1))
		w.must(0, "apply", "-var", "again=1").says(t, "its meta file cannot be trusted: it belongs to user 4321",
			"2 done")
	})
}

// TestFaultFuture lets the clock jump back, so that every file is from tomorrow.
func TestFaultFuture(t *testing.T) {
	w := stored(t)
	tomorrow := time.Now().Add(24 * time.Hour)
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type()&os.ModeSymlink == 0 {
			err = os.Chtimes(path, tomorrow, tomorrow)
		}
		return err
	})
	check(t, err)
	runs, err := filepath.Glob(w.path(".benchgraph/runs/*"))
	check(t, err)
	for _, run := range runs {
		name := tomorrow.UTC().Format("20060102T150405.000") + "-1.jsonl"
		check(t, os.Rename(run, filepath.Join(filepath.Dir(run), name)))
	}

	// The input has a time of tomorrow, and keeps that time and its size while its bytes change.
	w.write("in", "input 2\n")
	check(t, os.Chtimes(w.path("in"), tomorrow, tomorrow))
	w.must(0, "apply").says(t, "2 done")
	if _, file := w.result("task.user"); file("both") != "input 2\nbelow\n" {
		t.Errorf("task.user read %q", file("both"))
	}

	// An entry that was used tomorrow was not used too long ago, and counts as used now after its next use.
	w.must(0, "apply").says(t, "2 cached")
	w.must(0, "cache", "gc", "-max-age", "1h").says(t, "Removed 0 entries")
	metas, err := filepath.Glob(w.path(".benchgraph/store/entries/*/*/meta"))
	check(t, err)
	for _, meta := range metas {
		check(t, os.Chtimes(meta, tomorrow, tomorrow))
	}
	check(t, os.Remove(w.path(".benchgraph/memo"))) // it spares the store the telling for an hour
	w.must(0, "apply").says(t, "2 cached")
	used := 0
	for _, meta := range metas {
		if info, err := os.Stat(meta); err == nil && info.ModTime().Before(time.Now().Add(time.Minute)) {
			used++
		}
	}
	if used != 2 {
		t.Errorf("%d entries count as used now, want those of the two nodes", used)
	}

	// Later applies and attempts come last.
	names, err := filepath.Glob(w.path(".benchgraph/runs/*"))
	check(t, err)
	if last := filepath.Base(names[len(names)-1]); strings.HasSuffix(last, "-1.jsonl") {
		t.Errorf("the last of the runs is still %s", last)
	}
	var doc struct {
		Attempts []struct {
			Start    time.Time
			Duration float64 `json:"duration_s"`
		}
	}
	w.json(&doc, "show", "-json", "task.made")
	if len(doc.Attempts) != 2 {
		t.Fatalf("attempts are %+v", doc.Attempts)
	}
	for _, a := range doc.Attempts {
		if a.Duration < 0 {
			t.Errorf("an attempt took %v s", a.Duration)
		}
	}
}
