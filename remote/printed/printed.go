// Package printed keeps the output of a job.
package printed

import (
	"bytes"
	"io"

	"github.com/benchgraph/benchgraph/metrics/lines"
)

// Most bounds the bytes of a job's output that are kept.
const Most = 256 << 20

// Output passes on the output of a job, up to a number of bytes, and keeps its end.
type Output struct {
	To   io.Writer
	Left int64
	End  []byte
}

// maxEnd bounds the bytes of the end that is kept.
const maxEnd = 64 << 10

func (o *Output) Write(text []byte) (int, error) {
	o.End = append(o.End, text...)
	o.End = o.End[max(0, len(o.End)-maxEnd):]
	some := text[:min(int64(len(text)), o.Left)]
	o.Left -= int64(len(some))
	if _, err := o.To.Write(some); err != nil {
		return 0, err
	}
	return len(text), nil
}

// LastLine returns the last line; "" if there is none.
func (o *Output) LastLine() string { return lines.Last(bytes.NewReader(o.End)) }

// Before returns the line before the last mark.
func (o *Output) Before(mark string) string {
	return lines.Last(bytes.NewReader(o.End[:max(0, bytes.LastIndex(o.End, []byte(mark)))]))
}
