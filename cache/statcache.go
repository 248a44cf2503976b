package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// statGrain is how much older than its hashing a file's last change must be for the digest to be kept. A file that is
// changed again within one tick of its file system's clock keeps its time stamp, and often its size: the digest would
// stand for bytes that are gone. Ticks are 10 ms on the file systems of Linux, 1 s on ext3 and HFS+, 2 s on FAT.
const statGrain = 2 * time.Second

// statLife is how long digests of files stay that nobody asks for.
const statLife = 30 * 24 * time.Hour

// statMagic begins the file of a StatCache.
const statMagic = "benchgraph stat cache 1 "

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

// stat is what the operating system tells of a file, and the digest of its bytes. Times are Unix nanoseconds.
type stat struct {
	Size    int64  `json:"size"`
	Changed int64  `json:"mtime"`
	Touched int64  `json:"ctime"`
	Device  uint64 `json:"dev"`
	Inode   uint64 `json:"ino"`
	SHA256  string `json:"sha256"`
	Used    int64  `json:"used"` // Unix seconds, to the day
}

// same says whether two stats are of the same file in the same state.
func (s *stat) same(t *stat) bool {
	return s.Size == t.Size && s.Changed == t.Changed && s.Touched == t.Touched && s.Device == t.Device && s.Inode == t.Inode
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

func encodeStats(files map[string]stat) ([]byte, error) {
	body, err := json.Marshal(files)
	if err != nil {
		return nil, err
	}
	return seal(statMagic, body), nil
}

func decodeStats(data []byte) (map[string]stat, error) {
	body, err := unseal(statMagic, data)
	if err != nil {
		return nil, err
	}
	files := map[string]stat{}
	if err := json.Unmarshal(body, &files); err != nil {
		return nil, err
	}
	for name, s := range files {
		if s.SHA256 == "" {
			return nil, fmt.Errorf("%q has no digest", name)
		}
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
		st, mode, err := statFile(name)
		if err != nil {
			return File{}, err
		}
		result := File{Path: file, Mode: mode, Size: st.Size}
		if result.SHA256 = c.recall(name, &st, now); result.SHA256 != "" {
			return result, nil
		}
		sum, err := readFile(ctx, name)
		if err != nil {
			return File{}, err
		}
		after, _, err := statFile(name)
		if err != nil {
			return File{}, err
		}
		if after.same(&st) {
			st.SHA256 = sum
			c.remember(name, st, now)
			result.SHA256 = sum
			return result, nil
		}
	}
	return File{}, fmt.Errorf("%s changed each of the %d times that it was read", file, hashTries)
}

// recall is the digest remembered for a file in this state, or empty.
func (c *StatCache) recall(name string, st *stat, now time.Time) string {
	c.mu.RLock()
	known, ok := c.files[name]
	c.mu.RUnlock()
	if !ok || !known.same(st) {
		return ""
	}
	if now.Unix()-known.Used > int64(statLife.Seconds()/2) { // else every run would have something to save
		c.remember(name, known, now)
	}
	return known.SHA256
}

// remember keeps the digest of a file that was in this state at the moment before it was read.
func (c *StatCache) remember(name string, st stat, before time.Time) {
	if limit := before.Add(-statGrain).UnixNano(); st.Changed >= limit || st.Touched >= limit {
		return
	}
	st.Used = before.Unix()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[name] = st
	c.dirty = true
}

func statFile(name string) (stat, uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return stat{}, 0, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return stat{}, 0, fmt.Errorf("%s is not a regular file", name)
	}
	mode := uint32(modePlain)
	if st.Mode&0o100 != 0 {
		mode = modeExecutable
	}
	return stat{Size: st.Size, Changed: st.Mtim.Nano(), Touched: st.Ctim.Nano(), Device: uint64(st.Dev), Inode: st.Ino}, mode, nil
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
