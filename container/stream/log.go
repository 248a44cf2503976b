package stream

import (
	"bytes"
	"io"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// The log of a container is in two files. A file of logFile bytes becomes the older one, and the older one before is
// removed, so that the log holds the last logFile bytes at least.
const (
	logFile = 250_000 // 2000 lines of 80 characters, which take less than 0.1 s to read
	record  = 40      // bytes that a record has at most beside its text
	piece   = 80      // bytes that it has more when it is a piece of a long line
)

// LogConfig returns the log that a Log can be read from. Driver local alone keeps bytes that are no text.
func LogConfig() container.LogConfig {
	return container.LogConfig{Type: "local", Config: map[string]string{
		"max-size": strconv.Itoa(logFile), "max-file": "2", "compress": "false"}}
}

// Log is the end of the output of a container, as its engine has kept it.
type Log struct {
	Stdout, Stderr bytes.Buffer
	size           int // of its files, at most
}

// ReadLog reads the answer of an engine.
func ReadLog(r io.Reader) (*Log, error) {
	l := &Log{}
	_, err := stdcopy.StdCopy(records{&l.Stdout, &l.size}, records{&l.Stderr, &l.size}, r)
	return l, err
}

// records counts the size of records, each of which is one Write.
type records struct {
	to   *bytes.Buffer
	size *int
}

func (r records) Write(b []byte) (int, error) {
	*r.size += len(b) + record
	if !bytes.HasSuffix(b, newline) {
		*r.size += 2 * piece // the last piece has a newline
	}
	return r.to.Write(b)
}

// Complete adds to the streams of a container that has ended what they have not brought. It is false when something is
// lost, or that is not known.
func (l *Log) Complete(stdout, stderr *Counted) bool {
	whole := l.size < logFile
	more, known := stdout.rest(l.Stdout.Bytes(), whole)
	moreErrors, knownErrors := stderr.rest(l.Stderr.Bytes(), whole)
	if !known || !knownErrors {
		return false
	}
	_, _ = bytes.NewReader(more).WriteTo(stdout) // nothing is no Write; who writes below has the errors
	_, _ = bytes.NewReader(moreErrors).WriteTo(stderr)
	return true
}

// Counted passes a stream on, and knows how it ended. Newlines do not count: Docker 20.10 keeps none after a line that
// is longer than 16 KiB.
type Counted struct {
	io.Writer

	n    int64  // bytes
	end  []byte // the last of them, at most most
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

// rest returns what the log of the stream has and c has not got. It is not known when a log that is not whole has more
// than c, or ends otherwise.
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
