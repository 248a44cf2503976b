package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/cores"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// statLife is how long digests of files stay that nobody asks for.
const statLife = 30 * 24 * time.Hour

// statMagic begins the file of a StatCache.
const statMagic = "benchgraph stat cache 2 "

// StatCache remembers the digests of files, so that an unchanged file is not read twice. A file counts as unchanged
// when its size, modification time, change time, inode and device are; and only digests of files that had not been
// changed for two seconds are remembered. Its methods may be called from several goroutines.
type StatCache struct {
	path  string
	clock func() time.Time

	mu     sync.Mutex
	damage string
	files  map[string]stat // by absolute path; nil: not read yet
	dirty  bool
}

// stat is a file's stamp and the digest of its bytes.
type stat struct {
	Stamp
	SHA256 string
	Used   int64 // when its digest was last asked for: Unix seconds, to some days
}

// OpenStatCache gives access to the digests remembered in a file, which is read when a file is first asked for. One
// that is missing, damaged or not to be read is like an empty one; Damage tells which.
func OpenStatCache(path string) *StatCache { return &StatCache{path: path, clock: time.Now} }

// load reads what is remembered; the caller holds mu.
func (c *StatCache) load() {
	if c.files != nil {
		return
	}
	c.files = map[string]stat{}
	data, err := fs.ReadOwn(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var files map[string]stat
	if err == nil {
		files, err = decodeStats(data)
	}
	if errors.Is(err, fs.ErrIrregular) || errors.Is(err, fs.ErrForeign) {
		c.damage = fmt.Sprintf("stat cache %v: move it away; all files are read again", err)
		return
	}
	if err != nil {
		c.damage = fmt.Sprintf("stat cache %s: %v; all files are read again", c.path, err)
		return
	}
	c.files = files
}

// Damage says why what was remembered could not be used; it is empty when it could, or was not needed.
func (c *StatCache) Damage() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.damage
}

// encodeStats writes one record a file: the digest, six numbers (negative ones with 2⁶⁴ added) and the path, between
// spaces, then a zero byte, which no path holds. The order is that of the paths, so that equal caches are equal files.
func encodeStats(files map[string]stat) ([]byte, error) {
	var body []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s := files[name]
		if strings.Contains(s.SHA256, " ") || strings.Contains(name, "\x00") {
			return nil, fmt.Errorf("%q cannot be the name of a file with digest %q", name, s.SHA256)
		}
		body = append(body, s.SHA256...)
		for _, n := range [...]uint64{uint64(s.Size), uint64(s.Changed), uint64(s.Touched), s.Device, s.Inode,
			uint64(s.Used)} {
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
	now := time.Now()
	oldest := now.Add(-statLife).Unix()
	for name, s := range c.files {
		switch {
		case s.Used < oldest:
			delete(c.files, name)
		case s.Used > now.Unix(): // the clock was set back since; for ever is too long
			s.Used = now.Unix()
			c.files[name] = s
		}
	}
	data, err := encodeStats(c.files)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.path), 0o755)
	}
	if err == nil {
		err = fs.Replace(c.path, data)
	}
	if err != nil {
		return fmt.Errorf("stat cache %s: %w", c.path, err)
	}
	c.dirty = false
	return nil
}

// Hashed is a file as it was when it was hashed.
type Hashed struct {
	SHA256  string // of the bytes, in hexadecimal digits
	Mode    uint32 // 0o755 or 0o644
	Stamp   Stamp
	Settled bool // as long as the file has this stamp, it has these bytes
}

// Executable says whether a mode is that of a file that can be executed.
func Executable(mode uint32) bool { return mode&0o100 != 0 }

// Hash hashes a file. A link is followed. What is no regular file, and a file that changes whenever it is read, is an
// error.
func (c *StatCache) Hash(ctx context.Context, file string) (Hashed, error) {
	name, err := filepath.Abs(file)
	if err != nil {
		return Hashed{}, err
	}
	for range hashTries {
		now := c.clock()
		before, mode, err := StampFile(nil, name)
		if err != nil {
			return Hashed{}, err
		}
		h := Hashed{Mode: mode, Stamp: before, Settled: before.Settled(now)}
		if h.Settled { // else nothing is remembered of this state
			if h.SHA256 = c.recall(name, before, now); h.SHA256 != "" {
				return h, nil
			}
		}
		if h.SHA256, err = readFile(ctx, name); err != nil {
			return Hashed{}, err
		}
		after, _, err := StampFile(nil, name)
		if err != nil {
			return Hashed{}, err
		}
		if after == before {
			c.remember(name, stat{Stamp: before, SHA256: h.SHA256}, now)
			return h, nil
		}
	}
	return Hashed{}, fmt.Errorf("%s changed each of the %d times that it was read", file, hashTries)
}

// hashTries is how often a file that changes while it is read is read again.
const hashTries = 3

// HashAll is Hash of many files at once, on all cores, in the order given. The error joins those of all files.
func (c *StatCache) HashAll(ctx context.Context, files []string) ([]Hashed, error) {
	hashed, failed := make([]Hashed, len(files)), make([]error, len(files))
	cores.Share(len(files), 1, func(i, _ int) {
		if ctx.Err() == nil {
			hashed[i], failed[i] = c.Hash(ctx, files[i])
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return hashed, errors.Join(failed...)
}

// recall is the digest remembered for a file in this state, or empty.
func (c *StatCache) recall(name string, st Stamp, now time.Time) string {
	c.mu.Lock()
	c.load()
	known, ok := c.files[name]
	c.mu.Unlock()
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
	c.load()
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
	sum, _, err := HashReader(ctx, f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return sum, nil
}
