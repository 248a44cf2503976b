// Package journal remembers attempts: failures, and how long nodes take.
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

// Limits of a journal.
const (
	keptAttempts  = 32      // of each address
	keptDurations = 8       // of each address, for an estimate
	slack         = 1000    // superseded records that do not justify a compaction
	longestRecord = 1 << 20 // bytes; a longer line is damaged
	longestText   = 4 << 10 // bytes of a failure's message, evidence or remedy, since logs are hostile
)

// Journal remembers attempts: failures, and how long nodes take. It is a file with one checksummed JSON record a line,
// to which any number of processes append. A line that is damaged or was torn by a crash is skipped and counted. Of
// each address it keeps the last 32 attempts, and failures as long as they are remembered.
//
// The file is read on the first question or record, since most plans ask nothing. The methods may be called from
// several goroutines.
type Journal struct {
	path string
	lock *os.File // held while appending or compacting, since a compaction replaces the journal itself

	mu        sync.Mutex
	file      *os.File
	read      int64 // bytes of the file that were read
	lines     int   // in these bytes
	damaged   int   // lines that were skipped
	asks      bool  // something was asked or recorded, so the file was read
	err       error // why the file could not be read
	serial    int
	kept      int                        // number of attempts in addresses
	addresses map[string][]*noted        // oldest first
	kinds     map[string][]time.Duration // of successes, by address without instance key
	failures  map[cache.Key]*noted       // remembered, by key
	forgotten map[string]bool            // by ID of the attempt
}

// noted is an attempt with its position among all attempts.
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

// Load reads the file now, instead of on the first question.
func (j *Journal) Load() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	return j.err
}

// Current reports whether the file has nothing that was not read: every question would have the same answer now.
func (j *Journal) Current() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	info, err := j.file.Stat()
	return j.asks && j.err == nil && fs.IsAt(j.file, j.path) && err == nil && info.Size() == j.read
}

// asked reads the file if nothing was read yet.
func (j *Journal) asked() {
	if !j.asks && j.err == nil {
		j.err = j.catchUp()
	}
}

// Close makes the records durable and closes the file. It also returns the error of reading the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var sync error
	if j.asks {
		sync = j.file.Sync()
	}
	return errors.Join(j.err, sync, j.file.Close(), j.lock.Close())
}

// Damaged returns the number of lines that were skipped so far because they were torn or damaged.
func (j *Journal) Damaged() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.damaged
}

// Record appends an attempt. The record survives the end of this process at once, and a loss of power after Close.
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

// Forget makes the journal forget the remembered failures that match, so that they are tried again. The attempts stay
// listed.
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

// append writes the record that compose returns; none if ok is false. compose is called after the records of others
// were read.
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
	torn := info.Size() > j.read // another process died while it wrote a line: end that line
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
		_ = j.compact() // a long journal works as well, and the next record returns the error
	}
	return nil
}

// catchUp reads what any process has appended since the last call. After a compaction it reads the whole file.
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

// take applies the whole lines of data. It leaves a partial line at the end: a process is writing it, or died.
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

// reset forgets all that was read, and makes room for so many records.
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

// live lists the attempts that a compaction keeps, in order.
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

// compact replaces the file by one with only the kept attempts. Other processes notice that the file is another one.
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

// Failure returns the last attempt at a key, if it failed in a way that is remembered.
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

// FailureLogs returns the IDs of the attempts whose logs tell of remembered failures: of those that failed, and of
// those whose output the failures are about (empty where that is the same one).
func (j *Journal) FailureLogs() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	var ids []string
	for _, n := range j.failures {
		ids = append(ids, n.ID, n.Attempt.Failure.Log)
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

// Last returns the last kept attempt at a key under an address that was not interrupted.
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

// Replaced reports whether a result replaced that of an attempt, directly or through other results between them.
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
