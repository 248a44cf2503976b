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

// statLife is how long the digest of a file stays if nobody asks for it.
const statLife = 30 * 24 * time.Hour

// statMagic begins the file of a StatCache.
const statMagic = "benchgraph stat cache 2 "

// StatCache remembers the digests of files, so that an unchanged file is not read twice. A file counts as unchanged if
// its size, modification time, change time, inode and device are the same. A digest is remembered only if the file had
// not changed for two seconds. The methods may be called from several goroutines.
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
	Used   int64 // when the digest was last asked for, Unix seconds; up to 15 days old
}

// OpenStatCache returns the cache in a file, which is read on the first question. If the file is missing, damaged or
// cannot be read, the cache is empty; Damage returns why.
func OpenStatCache(path string) *StatCache { return &StatCache{path: path, clock: time.Now} }

// load reads the file. The caller holds mu.
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

// Damage returns why the file could not be used; "" if it was used, is missing or was not needed.
func (c *StatCache) Damage() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.damage
}

// encodeStats writes one record a file: the digest, six numbers (negative ones with 2⁶⁴ added) and the path, between
// spaces, then a zero byte, which no path has. Records are sorted by path, so that equal caches are equal files.
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

// decodeStats reads the output of encodeStats. Names and digests are slices of one string, since a plan reads the whole
// cache before it does anything else.
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

// Save writes the cache to its file in one step, if there is anything new. Of two processes that save, the last one
// wins: the digests of the other are computed again.
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
		case s.Used > now.Unix(): // noted before the clock was set back; it would never expire
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

// Hashed is the state of a file when it was hashed.
type Hashed struct {
	SHA256  string // of the bytes, in hexadecimal digits
	Mode    uint32 // 0o755 or 0o644
	Stamp   Stamp
	Settled bool // the file has these bytes as long as it has this stamp
}

// Executable reports whether a mode is that of a file that can be executed.
func Executable(mode uint32) bool { return mode&0o100 != 0 }

// Hash returns the digest of a file. A link is followed. A file that is not regular, or that changes during each of
// three readings, is an error.
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
		if h.Settled { // else this state is not remembered
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

// hashTries is how often a file that changes while it is read is read.
const hashTries = 3

// HashAll is Hash for many files at once, on all cores, in the order of files. The error joins those of all files.
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

// recall returns the remembered digest of a file with this stamp; "" if there is none.
func (c *StatCache) recall(name string, st Stamp, now time.Time) string {
	c.mu.Lock()
	c.load()
	known, ok := c.files[name]
	c.mu.Unlock()
	if !ok || known.Stamp != st {
		return ""
	}
	if now.Unix()-known.Used > int64(statLife.Seconds()/2) { // otherwise every run would have something to save
		c.remember(name, known, now)
	}
	return known.SHA256
}

// remember keeps the digest of a file. before is the time just before the file was stamped and read.
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

// readFile returns the SHA-256 of a file. It does not block on a pipe that took the file's place.
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
