//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestFaultTogether runs two projects with one store, in which garbage is collected again and again. Both come to their
// end, each collection is whole or refused, and no stored entry is torn.
func TestFaultTogether(t *testing.T) {
	const shared = `
variable "again" { default = "0" }
task "part" {
  for_each = toset(["1", "2", "3", "4", "5", "6"])
  command  = "echo ${each.key} ${var.again} > $OUT/part; head -c 100000 /dev/zero > $OUT/zeros"
}
task "all" {
  data    = { for name, part in task.part : "${name}/" => part }
  command = "cat */part > $OUT/all"
}
`
	store := t.TempDir() + "/store"
	worlds := []*world{newWorld(t, shared), newWorld(t, shared)}
	for _, w := range worlds {
		w.env = append(w.env, "BENCHGRAPH_CACHE_DIR="+store)
	}
	over := make(chan struct{})
	var collecting, applying sync.WaitGroup
	collected, busy := 0, 0
	collecting.Go(func() {
		for {
			o := worlds[0].run("cache", "gc", "-max-age", "1ns")
			switch {
			case o.code == 0:
				collected++
			case o.code == 5 && strings.Contains(o.stderr, "the store is in use by another process") &&
				strings.Contains(o.stderr, "Wait until"):
				busy++
			default:
				t.Errorf("gc: exit code %d\n%s%s", o.code, o.stdout, o.stderr)
				return
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	for _, w := range worlds {
		applying.Go(func() {
			for again := range 8 {
				o := w.run("apply", "-var", fmt.Sprint("again=", again))
				if o.code != 0 {
					t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
					return
				}
			}
		})
	}
	applying.Wait()
	close(over)
	collecting.Wait()
	t.Logf("%d collections, %d refused", collected, busy)
	for _, w := range worlds {
		w.must(0, "apply", "-var", "again=7")
		w.verify()
		if _, file := w.result("task.all", "-var", "again=7"); file("all") != "1 7\n2 7\n3 7\n4 7\n5 7\n6 7\n" {
			t.Errorf("all is %q", file("all"))
		}
	}
}

// TestFaultOnce lets four projects that share a store need the same results at the same time: each key is made once.
func TestFaultOnce(t *testing.T) {
	made := t.TempDir() + "/made"
	text := fmt.Sprintf(`
benchgraph { sandbox = "none" }
task "part" {
  for_each = toset(["1", "2", "3", "4", "5", "6", "7", "8"])
  command  = "echo ${each.key} >>%s; sleep 0.1; echo ${each.key} > $OUT/part"
}
`, made)
	store := t.TempDir() + "/store"
	var applying sync.WaitGroup
	for range 4 {
		w := newWorld(t, text)
		w.env = append(w.env, "BENCHGRAPH_CACHE_DIR="+store)
		applying.Go(func() {
			if o := w.run("apply"); o.code != 0 {
				t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
			}
		})
	}
	applying.Wait()
	runs, err := os.ReadFile(made)
	check(t, err)
	if n := strings.Count(string(runs), "\n"); n != 8 {
		t.Errorf("8 keys were made %d times", n)
	}
}

// TestFaultCollection collects garbage during an apply that will need the stored entries.
func TestFaultCollection(t *testing.T) {
	w := newWorld(t, `
benchgraph { sandbox = "none" }
task "part" { command = "echo part > $OUT/part" }
task "slow" {
  needs   = [task.part]
  command = "touch $HOME/../under; until [ -e $HOME/../go ]; do sleep 0.01; done"
}
task "all" {
  needs   = [task.slow]
  data    = { "part" = task.part }
  command = "cat part > $OUT/all"
}`)
	done := make(chan outcome)
	cmd := w.command("apply")
	go func() { done <- w.finish(cmd) }()
	until(t, "the slow node", func() bool { return exists(w.path("under")) })
	w.must(5, "cache", "gc", "-max-age", "1ns").says(t, "the store is in use by another process", "Wait until")
	w.write("go", "")
	o := <-done
	o.exits(t, 0)
	o.says(t, "Apply: 3 done")
	o.saysNot(t, "damaged")
	w.must(0, "cache", "gc", "-max-age", "1ns").says(t, "Removed 3 entries")
}

// changing has a node that runs while the input of the next node is changed.
const changing = `
benchgraph { sandbox = "none" }
task "first" { command = "touch $HOME/../under; until [ -e $HOME/../go ]; do sleep 0.01; done" }
task "second" {
  needs   = [task.first]
  inputs  = ["in"]
  command = "cat in > $OUT/it"
}
`

// TestFaultInput changes an input between the plan and its use, in every way: no result is made from an input that was
// not planned.
func TestFaultInput(t *testing.T) {
	for name, change := range map[string]func(path string){
		"other bytes":      func(path string) { check(t, os.WriteFile(path, []byte("other\n"), 0o644)) },
		"gone":             func(path string) { check(t, os.Remove(path)) },
		"a pipe":           func(path string) { check(t, os.Remove(path), syscall.Mkfifo(path, 0o644)) },
		"a directory":      func(path string) { check(t, os.Remove(path), os.Mkdir(path, 0o755)) },
		"a link to itself": func(path string) { check(t, os.Remove(path), os.Symlink("in", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, changing)
			w.write("in", "input\n")
			cmd := w.command("apply")
			done := make(chan outcome)
			go func() { done <- w.finish(cmd) }()
			until(t, "the first node", func() bool { return exists(w.path("under")) })
			change(w.path("in"))
			w.write("go", "")
			o := <-done
			o.exits(t, 3)
			o.says(t, "input in was changed after the plan was made", "[infra, input_changed]", "apply again")

			check(t, os.RemoveAll(w.path("in")))
			w.write("in", "input 2\n")
			w.must(0, "apply").says(t, "1 done, 1 cached")
			if _, file := w.result("task.second"); file("it") != "input 2\n" {
				t.Errorf("it is %q", file("it"))
			}
		})
	}
	t.Run("while it is read", func(t *testing.T) {
		w := newWorld(t, `
task "it" {
  inputs  = ["in"]
  command = "true"
}`)
		stop := make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					_ = os.WriteFile(w.path("in"), []byte(strings.Repeat(fmt.Sprintln(n), 100000)), 0o644)
				}
			}
		})
		until(t, "the input", func() bool { return exists(w.path("in")) })
		for range 10 {
			if o := w.run("plan"); o.code != 0 && !strings.Contains(o.stderr,
				"changed each of the 3 times that it was read") {
				t.Errorf("exit code %d: %s", o.code, o.stderr)
			}
		}
		close(stop)
		writing.Wait()
		w.must(0, "apply").says(t, "1 done")
		w.must(0, "apply").says(t, "1 cached")
	})
}

// TestFaultReadOnly plans with a read-only store.
func TestFaultReadOnly(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a read-only file system")
	}
	w := stored(t)
	store := w.path(".benchgraph/store")
	if err := syscall.Mount(store, store, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("no bind mounts here:", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(store, syscall.MNT_DETACH)) })
	check(t, syscall.Mount("none", store, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	w.must(0, "plan").says(t, "2 cached")
	w.must(0, "cache", "ls").says(t, "2 entries")
	w.must(0, "apply").says(t, "2 cached")
	w.must(1, "apply", "-var", "again=1").says(t, "read-only file system",
		"BENCHGRAPH_CACHE_DIR=DIR names another store")
}
