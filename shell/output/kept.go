package output

import (
	"io"
	"os"
	"sync"

	"github.com/benchgraph/benchgraph/metrics/lines"
)

// NewKept makes the place for the output of a command.
func NewKept(log io.Writer, dir string) *Kept { return &Kept{log: log, dir: dir} }

// Kept is what a command prints. It goes to the attempt's log, and into a file until it is known whether the command
// succeeded.
type Kept struct {
	log io.Writer
	dir string

	mu   sync.Mutex
	file *os.File // nil until there is something to keep: most commands print nothing
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

// Open opens what was kept so far for reading.
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

// LastLine is what a failure that nothing explains said last.
func (o *Kept) LastLine() string {
	f, err := o.Open()
	if err != nil {
		return ""
	}
	defer f.Close()
	return lastLine(f)
}

// lastLine is the last line of a log that says anything. Logs may be huge: only their end is read.
func lastLine(f *os.File) string {
	const window = 64 << 10
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	size := min(window, info.Size())
	return lines.Last(io.NewSectionReader(f, info.Size()-size, size))
}
