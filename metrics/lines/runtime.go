package lines

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// longestRecord is how much of a line of a runtime's log is read at once, in bytes. Runtimes cut the text of containers
// into pieces of 16 KiB.
const longestRecord = 1 << 20

// cri is a record of Kubernetes' Container Runtime Interface. P marks a piece of a line, F its end.
var cri = lazyregexp.New(`^([0-9-]{10}T[0-9:.]+(?:Z|[-+][0-9:]{5})) (stdout|stderr) ([FP])(?: |$)`)

// record is a line of a container runtime's log.
type record struct {
	text   []byte
	stream string
	whole  bool // text ends a line
}

// jsonFile reads a record of Docker's driver json-file.
func jsonFile(line []byte) (record, bool) {
	var r struct {
		Log    *string
		Stream string
		Time   time.Time
	}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &r) != nil || r.Log == nil || r.Time.IsZero() ||
		r.Stream != "stdout" && r.Stream != "stderr" {
		return record{}, false
	}
	text, whole := bytes.CutSuffix([]byte(*r.Log), []byte("\n"))
	return record{text, r.Stream, whole}, true
}

// criRecord reads a record of a container of Kubernetes.
func criRecord(line []byte) (record, bool) {
	m := cri().FindSubmatch(line)
	if m == nil {
		return record{}, false
	}
	return record{line[len(m[0]):], string(m[2]), m[3][0] == 'F'}, true
}

// runtimeLog is a reader of the text in the log of a container.
type runtimeLog struct {
	from  *bufio.Reader
	parse func([]byte) (record, bool)
	ready []byte            // text to be read
	open  map[string][]byte // by stream: the beginning of a line
	err   error
}

// Unwrap returns a reader of the text that a container printed, if r is the log that Docker or Kubernetes keeps of a
// container on disk; else of r.
func Unwrap(r io.Reader) io.Reader {
	from := bufio.NewReaderSize(r, longestRecord)
	head, _ := from.Peek(64 << 10)
	first, _, _ := bytes.Cut(head, []byte("\n"))
	for _, parse := range []func([]byte) (record, bool){jsonFile, criRecord} {
		if _, ok := parse(bytes.TrimSuffix(first, []byte("\r"))); ok {
			return &runtimeLog{from: from, parse: parse, open: map[string][]byte{}}
		}
	}
	return from
}

func (l *runtimeLog) Read(b []byte) (int, error) {
	for len(l.ready) == 0 && l.err == nil {
		l.next()
	}
	if len(l.ready) == 0 {
		return 0, l.err
	}
	n := copy(b, l.ready)
	l.ready = l.ready[n:]
	return n, nil
}

// next takes in one record. A line that is no record is text itself.
func (l *runtimeLog) next() {
	line, err := l.from.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		err = nil
	}
	l.err = err
	r, ok := l.parse(bytes.TrimRight(line, "\r\n"))
	l.ready = nil
	if !ok && err == nil {
		l.ready = bytes.Clone(line)
	} else if !ok {
		l.open[""] = bytes.Clone(line)
	} else if text := append(l.open[r.stream], r.text...); r.whole {
		l.ready, l.open[r.stream] = append(text, '\n'), nil
	} else if l.open[r.stream] = text; len(text) > longestRecord {
		l.ready, l.open[r.stream] = text, nil
	}
	if err != nil { // the end, or as good as that
		for _, stream := range []string{"stdout", "stderr", ""} {
			l.ready = append(l.ready, l.open[stream]...)
		}
	}
}
