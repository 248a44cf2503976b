package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// statLife is how long digests of files stay that nobody asks for.
const statLife = 30 * 24 * time.Hour

// statMagic begins the file of a StatCache.
const statMagic = "benchgraph stat cache 2 "

// StatCache remembers the digests of files, so that an unchanged file is not read twice. A file counts as unchanged when
// its size, modification time, change time, inode and device are; and only digests of files that had not been changed
// for two seconds are remembered. Its methods may be called from several goroutines.
type StatCache struct {
	path   string
	damage string

	mu    sync.RWMutex
	files map[string]stat // by absolute path
	dirty bool
}

// stat is a file's stamp and the digest of its bytes.
type stat struct {
	Stamp
	SHA256 string
	Used   int64 // when its digest was last asked for: Unix seconds, to some days
}

// OpenStatCache reads the digests remembered in a file. One that is missing or damaged is like an empty one; Damage
// tells which.
func OpenStatCache(path string) (*StatCache, error) {
	c := &StatCache{path: path, files: map[string]stat{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stat cache: %w", err)
	}
	files, err := decodeStats(data)
	if err != nil {
		c.damage = fmt.Sprintf("stat cache %s: %v; all files are read again", path, err)
		return c, nil
	}
	c.files = files
	return c, nil
}

// Damage says why what was remembered cannot be used; it is empty when it can.
func (c *StatCache) Damage() string { return c.damage }

// encodeStats writes one record a file: the digest, six numbers (negative ones with 2⁶⁴ added) and the path, between spaces, then a zero byte, which no
// path holds. The order is that of the paths, so that equal caches are equal files.
func encodeStats(files map[string]stat) ([]byte, error) {
	var body []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s := files[name]
		if strings.Contains(s.SHA256, " ") || strings.Contains(name, "\x00") {
			return nil, fmt.Errorf("%q cannot be the name of a file with digest %q", name, s.SHA256)
		}
		body = append(body, s.SHA256...)
		for _, n := range [...]uint64{uint64(s.Size), uint64(s.Changed), uint64(s.Touched), s.Device, s.Inode, uint64(s.Used)} {
			body = append(body, ' ')
			body = strconv.AppendUint(body, n, 10)
		}
		body = append(body, ' ')
		body = append(body, name...)
		body = append(body, 0)
	}
	return seal(statMagic, body), nil
}

// decodeStats reads what encodeStats wrote. Names and digests are parts of one string: a plan reads the whole cache
// before it does anything else.
func decodeStats(data []byte) (map[string]stat, error) {
	body, err := unseal(statMagic, data)
	if err != nil {
		return nil, err
	}
	files := make(map[string]stat, bytes.Count(body, []byte{0}))
	for text := string(body); text != ""; {
		line, rest, ok := strings.Cut(text, "\x00")
		if !ok {
			return nil, fmt.Errorf("it is cut short after %d files", len(files))
		}
		text = rest
		var s stat
		var numbers [6]uint64
		s.SHA256, line, _ = strings.Cut(line, " ")
		for i := range numbers {
			var digits string
			digits, line, _ = strings.Cut(line, " ")
			if numbers[i], err = strconv.ParseUint(digits, 10, 64); err != nil {
				return nil, fmt.Errorf("record %d: %w", len(files)+1, err)
			}
		}
		s.Size, s.Changed, s.Touched = int64(numbers[0]), int64(numbers[1]), int64(numbers[2])
		s.Device, s.Inode, s.Used = numbers[3], numbers[4], int64(numbers[5])
		if s.SHA256 == "" {
			return nil, fmt.Errorf("%q has no digest", line)
		}
		files[line] = s
	}
	return files, nil
}

// Save writes what is remembered to the file, if there is anything new, in one step. Of two processes that save, the
// last one wins: what the other found out is found out again.
func (c *StatCache) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dirty {
		return nil
	}
	oldest := time.Now().Add(-statLife).Unix()
	for name, s := range c.files {
		if s.Used < oldest {
			delete(c.files, name)
		}
	}
	data, err := encodeStats(c.files)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.path), 0o755)
	}
	if err == nil {
		err = writeFile(c.path, data)
	}
	if err != nil {
		return fmt.Errorf("stat cache %s: %w", c.path, err)
	}
	c.dirty = false
	return nil
}

// Hash is the SHA-256 of a file's bytes, in hexadecimal digits, and their number. A link is followed. What is no
// regular file, and a file that changes whenever it is read, is an error.
func (c *StatCache) Hash(ctx context.Context, file string) (sum string, size int64, err error) {
	f, err := c.hash(ctx, file)
	return f.SHA256, f.Size, err
}

// HashAll is Hash of many files at once, with their modes, in the order given. The error joins those of all files.
func (c *StatCache) HashAll(ctx context.Context, files []string) ([]File, error) {
	hashed, failed := make([]File, len(files)), make([]error, len(files))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		g.Go(func() error {
			hashed[i], failed[i] = c.hash(ctx, file)
			return nil
		})
	}
	_ = g.Wait() // the errors are in failed, one for each file
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return hashed, errors.Join(failed...)
}

// hashTries is how often a file that changes while it is read is read again.
const hashTries = 3

func (c *StatCache) hash(ctx context.Context, file string) (File, error) {
	name, err := filepath.Abs(file)
	if err != nil {
		return File{}, err
	}
	for range hashTries {
		now := time.Now()
		before, mode, err := StampFile(name)
		if err != nil {
			return File{}, err
		}
		result := File{Path: file, Mode: mode, Size: before.Size}
		if result.SHA256 = c.recall(name, before, now); result.SHA256 != "" {
			return result, nil
		}
		sum, err := readFile(ctx, name)
		if err != nil {
			return File{}, err
		}
		after, _, err := StampFile(name)
		if err != nil {
			return File{}, err
		}
		if after == before {
			c.remember(name, stat{Stamp: before, SHA256: sum}, now)
			result.SHA256 = sum
			return result, nil
		}
	}
	return File{}, fmt.Errorf("%s changed each of the %d times that it was read", file, hashTries)
}

// recall is the digest remembered for a file in this state, or empty.
func (c *StatCache) recall(name string, st Stamp, now time.Time) string {
	c.mu.RLock()
	known, ok := c.files[name]
	c.mu.RUnlock()
	if !ok || known.Stamp != st {
		return ""
	}
	if now.Unix()-known.Used > int64(statLife.Seconds()/2) { // else every run would have something to save
		c.remember(name, known, now)
	}
	return known.SHA256
}

// remember keeps the digest of a file that was in this state at the moment before it was read.
func (c *StatCache) remember(name string, st stat, before time.Time) {
	if !st.Settled(before) {
		return
	}
	st.Used = before.Unix()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[name] = st
	c.dirty = true
}

// readFile is the SHA-256 of a file. It does not wait for what is no file, such as a pipe that took its place.
func readFile(ctx context.Context, name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, _, err := hashReader(ctx, f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return sum, nil
}
