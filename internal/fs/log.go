package fs

import (
	"os"
	"sync"
)

// keptOfLog is the size of the beginning and of the end that a shortened log has, in bytes.
const keptOfLog = 1 << 20

// Log is a text file that several streams append to. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	f  *os.File
}

// NewLog makes a new log in an existing directory.
func NewLog(name string) (*Log, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &Log{f: f}, nil
}

// File returns the open file.
func (l *Log) File() *os.File { return l.f }

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

// Shorten leaves out the middle of a large log, for want of room on the disk. A log that cannot be shortened stays.
func (l *Log) Shorten() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = Shorten(l.f.Name(), keptOfLog)
}

// Close closes the file.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Close()
}
