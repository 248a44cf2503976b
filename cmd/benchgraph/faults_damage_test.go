//go:build linux && faults

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// damages are the ways in which a disk, a person or another program can damage a stored result. Each gets the entry's
// directory.
var damages = []struct {
	name   string
	reason string // that is told
	do     func(t *testing.T, entry string)
}{
	{"a bit of a file", "text has other contents than were stored", func(t *testing.T, e string) {
		overwrite(t, e+"/out/text", "input x\n")
	}},
	{"a file is truncated", "text has 0 bytes instead of 8", func(t *testing.T, e string) {
		overwrite(t, e+"/out/text", "")
	}},
	{"a file is missing", "text is missing", func(t *testing.T, e string) { check(t, os.Remove(e+"/out/text")) }},
	{"a file more", "more was added", func(t *testing.T, e string) {
		check(t, os.WriteFile(e+"/out/more", nil, 0o644))
	}},
	{"a file became executable", "text has another mode", func(t *testing.T, e string) {
		check(t, os.Chmod(e+"/out/text", 0o755))
	}},
	{"a file became a link to outside with the same bytes", "text is missing", func(t *testing.T, e string) {
		check(t, os.Rename(e+"/out/text", e+"/../../../../text"), os.Symlink("../../../../../text", e+"/out/text"))
	}},
	{"a file became a directory", "text is no regular file", func(t *testing.T, e string) {
		check(t, os.Remove(e+"/out/text"), os.Mkdir(e+"/out/text", 0o755))
	}},
	{"a file became a pipe", "text is no regular file", func(t *testing.T, e string) {
		check(t, os.Remove(e+"/out/text"), syscall.Mkfifo(e+"/out/text", 0o644))
	}},
	{"a directory became a link to outside with the same files", "sub", func(t *testing.T, e string) {
		check(t, os.Rename(e+"/out/sub", e+"/../../../../sub"), os.Symlink("../../../../../sub", e+"/out/sub"))
	}},
	{"all files became a link to outside with the same files", "its directory of files is",
		func(t *testing.T, e string) {
			check(t, os.Rename(e+"/out", e+"/../../../../out"), os.Symlink("../../../../out", e+"/out"))
		}},
	{"all files became a pipe", "is missing", func(t *testing.T, e string) {
		check(t, os.RemoveAll(e+"/out"), syscall.Mkfifo(e+"/out", 0o644))
	}},
	{"no files", "is missing", func(t *testing.T, e string) { check(t, os.RemoveAll(e+"/out")) }},
	{"a link leads elsewhere", "link has another mode or target", func(t *testing.T, e string) {
		check(t, os.Remove(e+"/out/link"), os.Symlink("sub/text", e+"/out/link"))
	}},
	{"meta is missing", "its meta file is missing", func(t *testing.T, e string) { check(t, os.Remove(e+"/meta")) }},
	{"meta is empty", "its meta file", func(t *testing.T, e string) { overwrite(t, e+"/meta", "") }},
	{"meta is cut short", "its checksum is wrong", func(t *testing.T, e string) {
		check(t, os.Truncate(e+"/meta", 100))
	}},
	{"meta is a directory", "its meta file", func(t *testing.T, e string) {
		check(t, os.Remove(e+"/meta"), os.Mkdir(e+"/meta", 0o755))
	}},
	{"meta is a pipe", "its meta file", func(t *testing.T, e string) {
		check(t, os.Remove(e+"/meta"), syscall.Mkfifo(e+"/meta", 0o644))
	}},
	{"meta is a link to outside", "its meta file", func(t *testing.T, e string) {
		check(t, os.Rename(e+"/meta", e+"/../../../../meta"), os.Symlink("../../../../meta", e+"/meta"))
	}},
	{"meta is that of another", "its meta file is that of", func(t *testing.T, e string) {
		metas, err := filepath.Glob(e + "/../../*/*/meta")
		check(t, err)
		for _, other := range metas {
			if !strings.Contains(other, filepath.Base(e)) {
				text, err := os.ReadFile(other)
				check(t, err)
				overwrite(t, e+"/meta", string(text))
				return
			}
		}
		t.Fatal("there is no other entry")
	}},
	{"the entry is a file", "it is no directory", func(t *testing.T, e string) {
		check(t, os.RemoveAll(e), os.WriteFile(e, nil, 0o644))
	}},
	{"the entry is a pipe", "it is no directory", func(t *testing.T, e string) {
		check(t, os.RemoveAll(e), syscall.Mkfifo(e, 0o644))
	}},
	{"the entry is a link to outside", "its directory of files is no directory", func(t *testing.T, e string) {
		check(t, os.Rename(e, e+"/../../../../entry"), os.Symlink("../../../entry", e))
	}},
}

// overwrite changes a file in place, as a disk that forgets would.
func overwrite(t *testing.T, path, text string) {
	t.Helper()
	check(t, os.Chmod(path, 0o644), os.WriteFile(path, []byte(text), 0o644), os.Chmod(path, 0o444))
}

// writable opens a stored result up for the test to damage.
func writable(t *testing.T, dir string) {
	t.Helper()
	check(t, exec.Command("chmod", "-R", "u+w", dir).Run())
}

// TestFaultEntry damages a result in every way: no node gets other bytes than were stored, the node that made the
// result runs again, the reason is shown, and nothing waits for ever.
func TestFaultEntry(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, made)
			w.write("in", "input 1\n")
			w.must(0, "apply")
			entry := w.entry("task.made")
			writable(t, entry)
			d.do(t, entry)

			o := w.run("apply", "-var", "again=1")
			t.Log(o.code, o.stdout, o.stderr)
			o.exits(t, 0)
			o.says(t, d.reason, "start    task.made")
			w.must(0, "apply", "-var", "again=1").says(t, "0 done, 2 cached")
			w.verify()
			if _, file := w.result("task.user", "-var", "again=1"); file("both") != "input 1\nbelow\n" {
				t.Errorf("task.user read %q", file("both"))
			}
		})
	}
}
