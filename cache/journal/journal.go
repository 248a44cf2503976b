// Package journal remembers attempts: what failed, and how long things take.
package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// What a journal keeps.
const (
	keptAttempts  = 32      // of each address
	keptDurations = 8       // for an estimate
	slack         = 1000    // superseded records that are not worth a compaction
	longestRecord = 1 << 20 // bytes; a longer line is damaged
	longestText   = 4 << 10 // bytes of a failure's message, evidence or remedy: logs are hostile
)

// Journal remembers attempts: what failed, how long things take. It is a file of one checksummed JSON record a line, to
// which any number of processes append. A line that was torn by a crash, or damaged, is passed over and counted.
// Of each address the last 32 attempts are kept, and failures as long as they are remembered.
//
// The file is read when something is first asked, or recorded: most plans ask nothing. Its methods may be called from
// several goroutines.
type Journal struct {
	path string
	lock *os.File // held while appending or compacting: the journal itself is replaced by a compaction

	mu        sync.Mutex
	file      *os.File
	read      int64 // bytes of the file that have been taken in
	lines     int   // lines among them
	damaged   int   // those that were passed over
	asks      bool  // something was asked or recorded, so that what others record is taken in
	err       error // why it could not be read
	serial    int
	kept      int                        // attempts in addresses
	addresses map[string][]*noted        // oldest first
	kinds     map[string][]time.Duration // of successes, by address without instance key
	failures  map[cache.Key]*noted       // remembered
	forgotten map[string]bool            // IDs
}

// noted is an attempt and its place in the order of all.
type noted struct {
	*Attempt
	serial int
}

// Open opens the journal in a file. It creates the file if there is none. On a read-only file system Open succeeds, but
// no attempt can be recorded.
func Open(path string) (*Journal, error) {
	j := &Journal{path: path}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return j, nil
}

func (j *Journal) open() error {
	if err := os.MkdirAll(filepath.Dir(j.path), 0o755); err != nil {
		return err
	}
	var err error
	if j.lock, err = fs.MakeOrReadOwn(j.path+".lock", 0); err != nil {
		return err
	}
	if err := j.reopen(); err != nil {
		j.lock.Close()
		return err
	}
	return nil
}

// Load reads what there is now, instead of when something is first asked.
func (j *Journal) Load() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	return j.err
}

// Current says whether the file has just what was taken in: what was asked would have the same answer now.
func (j *Journal) Current() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	info, err := j.file.Stat()
	return j.asks && j.err == nil && fs.IsAt(j.file, j.path) && err == nil && info.Size() == j.read
}

// asked reads what there is when nothing was read yet.
func (j *Journal) asked() {
	if !j.asks && j.err == nil {
		j.err = j.catchUp()
	}
}

// Close makes what was recorded durable and closes the file. It tells when the journal could not be read.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var sync error
	if j.asks {
		sync = j.file.Sync()
	}
	return errors.Join(j.err, sync, j.file.Close(), j.lock.Close())
}

// Damaged counts the lines that were passed over, so far, because they were torn or damaged.
func (j *Journal) Damaged() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.damaged
}

// Record appends an attempt. It survives the end of this process at once, and a loss of power after Close.
// Texts of a failure that are longer than 4 KiB are cut.
func (j *Journal) Record(a Attempt) error {
	if a.Failure != nil {
		f := *a.Failure
		for _, text := range []*string{&f.Message, &f.Evidence, &f.Remedy} {
			*text = strings.ToValidUTF8((*text)[:min(len(*text), longestText)], "\uFFFD")
		}
		a.Failure = &f
	}
	return j.append(func() (record, bool) { return record{Attempt: &a}, true })
}

// Forget makes the journal forget the remembered failures that match, so that they are tried again. The attempts
// themselves stay listed.
func (j *Journal) Forget(match func(Attempt) bool) error {
	return j.append(func() (record, bool) {
		var r record
		for _, n := range j.failures {
			if match(*n.Attempt) {
				r.Forget = append(r.Forget, n.ID)
			}
		}
		slices.Sort(r.Forget)
		return r, len(r.Forget) > 0
	})
}

// append writes the record that compose makes, having seen all that others wrote; none when it says false.
func (j *Journal) append(compose func() (record, bool)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := fs.Lock(j.lock, fs.Exclusive)
	if err == nil {
		err = errors.Join(j.appendLocked(compose), fs.Unlock(j.lock))
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	return nil
}

func (j *Journal) appendLocked(compose func() (record, bool)) error {
	if err := j.catchUp(); err != nil {
		return err
	}
	r, ok := compose()
	if !ok {
		return nil
	}
	line, err := encodeRecord(r)
	if err != nil {
		return err
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	torn := info.Size() > j.read // a line, since nobody else is writing: end it
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	if torn {
		err = j.catchUp()
	} else {
		j.take(line)
	}
	if err != nil {
		return err
	}
	if j.lines > slack+2*(j.kept+len(j.failures)) {
		_ = j.compact() // one that is too long works as well; what is wrong with it shows at the next record
	}
	return nil
}

// catchUp takes in what was appended since the last time, by whomever. After a compaction it begins anew.
func (j *Journal) catchUp() error {
	j.asks = true
	if !fs.IsAt(j.file, j.path) {
		if err := j.reopen(); err != nil {
			return err
		}
	}
	var news bytes.Buffer
	if info, err := j.file.Stat(); err == nil && info.Size() > j.read {
		news.Grow(int(info.Size()-j.read) + bytes.MinRead)
	}
	if _, err := news.ReadFrom(io.NewSectionReader(j.file, j.read, 1<<62)); err != nil {
		return err
	}
	if j.lines == 0 {
		j.reset(bytes.Count(news.Bytes(), []byte{'\n'}))
	}
	j.take(news.Bytes())
	return nil
}

// take takes in the whole lines that data begins with. Half a line at its end stays: its writer is at it, or was torn
// away from it.
func (j *Journal) take(data []byte) {
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	j.read += int64(len(data))
	for _, part := range decodeLines(data) {
		j.lines += part.lines
		j.damaged += part.damaged
		for i := range part.records {
			j.apply(part.records[i])
		}
	}
}

func (j *Journal) reopen() error {
	f, err := fs.MakeOrReadOwn(j.path, os.O_APPEND)
	if err != nil {
		return err
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file = f
	j.reset(0)
	return nil
}

// reset forgets what was taken in, and makes room for so many records.
func (j *Journal) reset(records int) {
	j.read, j.lines, j.damaged, j.serial, j.kept = 0, 0, 0, 0, 0
	j.addresses = make(map[string][]*noted, records)
	j.kinds = map[string][]time.Duration{}
	j.failures = map[cache.Key]*noted{}
	j.forgotten = map[string]bool{}
}

func (j *Journal) apply(r record) {
	for _, id := range r.Forget {
		j.forgotten[id] = true
	}
	if len(r.Forget) > 0 {
		for key, n := range j.failures {
			if j.forgotten[n.ID] {
				delete(j.failures, key)
			}
		}
	}
	if r.Attempt == nil {
		return
	}
	j.serial++
	n := &noted{Attempt: r.Attempt, serial: j.serial}
	before := len(j.addresses[n.Address])
	j.addresses[n.Address] = lastOf(append(j.addresses[n.Address], n), keptAttempts)
	j.kept += len(j.addresses[n.Address]) - before
	switch {
	case n.Failure == nil:
		delete(j.failures, n.Key)
		kind := kindOf(n.Address)
		j.kinds[kind] = lastOf(append(j.kinds[kind], n.Duration), keptDurations)
	case n.Failure.Class.Retried():
		delete(j.failures, n.Key)
	default:
		j.failures[n.Key] = n
	}
}

// live lists what a compaction keeps, in order.
func (j *Journal) live() []*noted {
	var all []*noted
	for _, attempts := range j.addresses {
		all = append(all, attempts...)
	}
	for _, n := range j.failures {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *noted) int { return cmp.Compare(a.serial, b.serial) })
	return slices.Compact(all)
}

// compact replaces the file by one that holds only what is kept. Other processes notice that it is another file.
func (j *Journal) compact() error {
	var b bytes.Buffer
	var forgotten []string
	for _, n := range j.live() {
		line, err := encodeRecord(record{Attempt: n.Attempt})
		if err != nil {
			return err
		}
		b.Write(line)
		if j.forgotten[n.ID] {
			forgotten = append(forgotten, n.ID)
		}
	}
	for ids := range slices.Chunk(forgotten, 1000) {
		line, err := encodeRecord(record{Forget: ids})
		if err != nil {
			return err
		}
		b.Write(line)
	}
	if err := fs.Replace(j.path, b.Bytes()); err != nil {
		return err
	}
	return j.catchUp()
}

// Failure is the last attempt at a key, if it failed in a way that is remembered.
func (j *Journal) Failure(key cache.Key) (Attempt, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	n, ok := j.failures[key]
	if !ok {
		return Attempt{}, false
	}
	return *n.Attempt, true
}

// Failures returns the IDs of the attempts whose failures are remembered.
func (j *Journal) Failures() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	var ids []string
	for _, n := range j.failures {
		ids = append(ids, n.ID)
	}
	return ids
}

// Attempts lists the kept attempts at an address, the newest last.
func (j *Journal) Attempts(address string) []Attempt {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	attempts := make([]Attempt, 0, len(j.addresses[address]))
	for _, n := range j.addresses[address] {
		attempts = append(attempts, *n.Attempt)
	}
	return attempts
}

// Last is the last attempt at a key under an address that was not interrupted, of those that are kept.
func (j *Journal) Last(address string, key cache.Key) (Attempt, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	for _, n := range slices.Backward(j.addresses[address]) {
		if n.Key == key && !n.Interrupted() {
			return *n.Attempt, true
		}
	}
	return Attempt{}, false
}

// Replaced reports whether a result was made in the place of that of an attempt, or in the place of one that was.
func (j *Journal) Replaced(own cache.Meta, attempt string) bool {
	replaces := map[string]string{} // by attempt that succeeded
	for _, a := range j.Attempts(own.Address) {
		if a.Failure == nil && a.Key == own.Key {
			replaces[a.ID] = a.Replaces
		}
	}
	for id := own.Log; id != ""; id = replaces[id] {
		if id == attempt {
			return true
		}
	}
	return false
}
