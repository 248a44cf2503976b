package output

import (
	"io"
	"os"
	"sync"

	"github.com/benchgraph/benchgraph/metrics/lines"
)

// NewKept returns a Kept for the output of a command.
func NewKept(log io.Writer, dir string) *Kept { return &Kept{log: log, dir: dir} }

// Kept is the output of a command. It is written to the attempt's log, and to a file for the diagnosis of a failure.
type Kept struct {
	log io.Writer
	dir string

	mu   sync.Mutex
	file *os.File // nil until the first output: most commands print nothing
}

func (o *Kept) Write(p []byte) (int, error) {
	if n, err := o.keep(p); err != nil {
		return n, err
	}
	return o.log.Write(p)
}

func (o *Kept) keep(p []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		if o.file, err = os.CreateTemp(o.dir, "output-*.log"); err != nil {
			return 0, err
		}
	}
	return o.file.Write(p)
}

// Open opens the output so far for reading.
func (o *Kept) Open() (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return os.Open(os.DevNull)
	}
	return os.Open(o.file.Name())
}

// Close ends the writing.
func (o *Kept) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
	}
}

// LastLine returns the last line of the output, as evidence of a failure without a rule.
func (o *Kept) LastLine() string {
	f, err := o.Open()
	if err != nil {
		return ""
	}
	defer f.Close()
	return lastLine(f)
}

// lastLine returns the last line with text. Logs may be huge: only the end is read.
func lastLine(f *os.File) string {
	const window = 64 << 10
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	size := min(window, info.Size())
	return lines.Last(io.NewSectionReader(f, info.Size()-size, size))
}
