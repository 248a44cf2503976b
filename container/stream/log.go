package stream

import (
	"bytes"
	"io"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// The engine keeps the log of a container in two files. When the newer one has logFile bytes, it replaces the older
// one, so the log holds at least the last logFile bytes.
const (
	logFile = 250_000 // 2000 lines of 80 characters, which take less than 0.1 s to read
	record  = 40      // largest overhead of a record, in bytes
	piece   = 80      // largest additional overhead of a record with a part of a long line
)

// LogConfig returns the configuration of logs that ReadLog can read. Only driver local keeps invalid UTF-8.
func LogConfig() container.LogConfig {
	return container.LogConfig{Type: "local", Config: map[string]string{
		"max-size": strconv.Itoa(logFile), "max-file": "2", "compress": "false"}}
}

// Log is the end of a container's output, as kept by its engine.
type Log struct {
	Stdout, Stderr bytes.Buffer
	size           int // largest possible size of its files
}

// ReadLog reads an engine's answer to a log request.
func ReadLog(r io.Reader) (*Log, error) {
	l := &Log{}
	_, err := stdcopy.StdCopy(records{&l.Stdout, &l.size}, records{&l.Stderr, &l.size}, r)
	return l, err
}

// records counts the size of records; each Write is one record.
type records struct {
	to   *bytes.Buffer
	size *int
}

func (r records) Write(b []byte) (int, error) {
	*r.size += len(b) + record
	if !bytes.HasSuffix(b, newline) {
		*r.size += 2 * piece // only the last part has a newline
	}
	return r.to.Write(b)
}

// Complete adds the missing output to the streams of an ended container. It returns false if output is lost, or may
// be lost.
func (l *Log) Complete(stdout, stderr *Counted) bool {
	whole := l.size < logFile
	more, known := stdout.rest(l.Stdout.Bytes(), whole)
	moreErrors, knownErrors := stderr.rest(l.Stderr.Bytes(), whole)
	if !known || !knownErrors {
		return false
	}
	_, _ = bytes.NewReader(more).WriteTo(stdout) // an empty rest makes no Write; the writers below keep their errors
	_, _ = bytes.NewReader(moreErrors).WriteTo(stderr)
	return true
}

// Counted passes a stream on and remembers its length and end. It does not count newlines: Docker 20.10 drops the one
// after a line longer than 16 KiB.
type Counted struct {
	io.Writer

	n    int64  // number of bytes
	end  []byte // last bytes, at most most
	open int    // newlines after them
}

const most = 4096

func (c *Counted) Write(b []byte) (int, error) {
	text := bytes.ReplaceAll(b, newline, nil)
	if c.open += len(b); len(text) > 0 {
		c.open = len(b) - len(bytes.TrimRight(b, "\n"))
	}
	c.n += int64(len(text))
	c.end = append(c.end, text...)
	c.end = c.end[max(0, len(c.end)-most):]
	return c.Writer.Write(b)
}

var newline = []byte{'\n'}

// rest returns the part of the stream's log that c has not got. known is false if an incomplete log has more than c,
// or has a different end.
func (c *Counted) rest(log []byte, whole bool) (rest []byte, known bool) {
	text := bytes.ReplaceAll(log, newline, nil)
	if n := int64(len(text)); !whole || c.n > n {
		same := min(len(c.end), len(text))
		return nil, c.n >= n && bytes.Equal(c.end[len(c.end)-same:], text[len(text)-same:])
	}
	rest = log
	for n := c.n; n > 0; rest = rest[1:] {
		if rest[0] != '\n' {
			n--
		}
	}
	for open := c.open; open > 0 && len(rest) > 0 && rest[0] == '\n'; open-- {
		rest = rest[1:]
	}
	return rest, bytes.HasSuffix(text[:c.n], c.end)
}
