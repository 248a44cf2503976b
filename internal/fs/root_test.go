package fs

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// grow makes a tree of names within each other, with files on the way, and returns the names of its files.
func grow(t testing.TB, levels int) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(dir, "d")) })
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	name := "d"
	for range levels {
		if err := root.at(name, func(r *os.Root, name string) error { return r.Mkdir(name, 0o755) }); err != nil {
			t.Fatal(err)
		}
		for _, leaf := range []string{"a", "z"} {
			f, err := root.OpenFile(path.Join(name, leaf), os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(f, name)
			f.Close()
			files = append(files, path.Join(name, leaf))
		}
		name += "/d"
	}
	return dir, files
}

// Whatever the order of names is, each is the file that it names, also when several goroutines ask.
func TestNamesAreFoundInAnyOrder(t *testing.T) {
	dir, files := grow(t, 150)
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var all sync.WaitGroup
	for seed := range uint64(4) {
		mine := slices.Clone(files)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		all.Go(func() {
			for _, name := range mine {
				info, err := root.Lstat(name)
				if err != nil || info.IsDir() || info.Size() != int64(len(path.Dir(name))) {
					t.Errorf("%s: %v, %v", name, info, err)
					return
				}
				if err := root.Chmod(name, 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, name := range files {
		f, err := root.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(f)
		f.Close()
		if string(text) != path.Dir(name) {
			t.Fatalf("%s holds %s", name, text)
		}
	}
	for _, name := range slices.Backward(files) {
		if err := root.Remove(name); err != nil {
			t.Fatal(err)
		}
		if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s is still there: %v", name, err)
		}
	}
	if len(root.open) > 150/step+1 {
		t.Errorf("%d directories are open", len(root.open))
	}
}

// A link in the place of a directory leads nowhere, however deep it lies.
func TestLinksLeadNowhere(t *testing.T) {
	dir, files := grow(t, 80)
	deepest := path.Dir(files[len(files)-1])
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.MkdirAll(filepath.Join(outside, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	middle := deepest[:len(deepest)-2*20]
	if err := os.RemoveAll(filepath.Join(dir, middle)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, middle)); err != nil {
		t.Fatal(err)
	}
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.Lstat(middle + "/d"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was followed: %v", err)
	}
	if target, err := root.Readlink(middle); err != nil || target != outside {
		t.Errorf("%q, %v", target, err)
	}
}

// A walk takes as long as there are levels, where an os.Root takes the square of that.
func BenchmarkWalk(b *testing.B) {
	dir, _ := grow(b, 1500)
	open := map[string]func() (interface {
		Lstat(string) (fs.FileInfo, error)
		Close() error
	}, error){
		"Root": func() (interface {
			Lstat(string) (fs.FileInfo, error)
			Close() error
		}, error) {
			return OpenRoot(dir)
		},
		"os.Root": func() (interface {
			Lstat(string) (fs.FileInfo, error)
			Close() error
		}, error) {
			return os.OpenRoot(dir)
		},
	}
	for name, open := range open {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				root, err := open()
				if err != nil {
					b.Fatal(err)
				}
				for level := 1; level <= 1500; level++ {
					if _, err := root.Lstat("d" + strings.Repeat("/d", level-1)); err != nil {
						b.Fatal(err)
					}
				}
				root.Close()
			}
		})
	}
}
