package device_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/device"
)

// as runs a function as a user, on a thread of its own: a file that it opens is that user's.
func as(t *testing.T, user int, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)      // also when the test is given up here
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		_, _, bad := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(user), ^uintptr(0))
		if bad != 0 {
			t.Error(bad)
			return
		}
		do()
	}()
	if <-done; t.Failed() {
		t.FailNow()
	}
}

const root, nobody = 0, 65534

// openTempDir is a directory in which every user may make files.
func openTempDir(t *testing.T) string {
	t.Helper()
	if os.Getuid() != root {
		t.Skip("needs root, to be two users")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// In any order and with any umask: commands of one user keep another user from quiet, and quiet keeps others from
// running commands.
func TestQuietHoldsBetweenUsers(t *testing.T) {
	for name, users := range map[string][2]int{"root first": {root, nobody}, "root second": {nobody, root}} {
		t.Run(name, func(t *testing.T) {
			dir := openTempDir(t)
			defer syscall.Umask(syscall.Umask(0o077))
			var pools [2]*device.LocalPool
			for i, user := range users {
				as(t, user, func() {
					own := filepath.Join(dir, fmt.Sprint("own", user), "host.lock")
					pools[i] = newPool(t, device.Options{CPUs: 4, HostLock: own, GPULocks: filepath.Join(dir, "all"),
						Warn: t.Errorf})
				})
			}
			var lease *device.Lease
			for i, user := range users {
				as(t, user, func() { lease = must(t, pools[i], device.Request{Quiet: true}) })
				as(t, users[1-i], func() {
					mustNot(t, pools[1-i], device.Request{CPUs: 1}, "a quiet one of")
				})
				lease.Release()
			}
			// A system that tidies /tmp up makes room for whoever comes next.
			if err := os.RemoveAll(filepath.Join(dir, "all")); err != nil {
				t.Fatal(err)
			}
			as(t, users[1], func() { lease = must(t, pools[1], device.Request{CPUs: 1}) })
			as(t, users[0], func() { mustNot(t, pools[0], device.Request{Quiet: true}, "the end of what") })
			lease.Release()
		})
	}
}

// A file or directory of another user in the place of the locks locks nobody out.
func TestADirectoryOfLocksThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(dir string) error
		owner int
		warns bool
	}{
		"another's, closed": {func(dir string) error { return os.Mkdir(dir, 0o755) }, root, true},
		"another's lock, closed": {func(dir string) error {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "host.lock"), nil, 0o600)
		}, root, true},
		"a link":                    {func(dir string) error { return os.Symlink("/etc", dir) }, root, true},
		"a file":                    {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, root, true},
		"one's own, made by halves": {func(dir string) error { return os.Mkdir(dir, 0o700) }, nobody, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := openTempDir(t)
			all, own, warning := filepath.Join(dir, "all"), filepath.Join(dir, "own", "host.lock"), ""
			as(t, test.owner, func() {
				if err := test.make(all); err != nil {
					t.Error(err)
				}
			})
			as(t, nobody, func() {
				pool := newPool(t, device.Options{CPUs: 4, HostLock: own, GPULocks: all,
					Warn: func(format string, args ...any) { warning = fmt.Sprintf(format, args...) }})
				must(t, pool, device.Request{Quiet: true}).Release()
				if _, err := os.Stat(own); (err == nil) != test.warns {
					t.Errorf("the own lock: %v", err)
				}
			})
			if (warning != "") != test.warns ||
				test.warns && !strings.Contains(warning, "Have the owner of "+all+" or root remove it") {
				t.Errorf("the warning is %q", warning)
			}
			if info, err := os.Lstat(all); !test.warns && info.Mode() != os.ModeDir|0o777|os.ModeSticky {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}
