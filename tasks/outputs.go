package tasks

import (
	"bufio"
	"bytes"
	"io"
)

// outputs reads from the log of an attempt only lines that commands wrote: neither the commands themselves, which may
// hold the very words that are looked for, nor lines of other members of a block.
type outputs struct {
	log     *bufio.Reader
	member  string // whose part is read; empty: the log has no parts
	inside  bool   // the current line is in that part
	within  bool   // the next bytes go on with the current line
	command bool   // the current line is part of a command
	rest    []byte // of the current line, to be returned
}

func newOutputs(log io.Reader, member string) *outputs {
	return &outputs{log: bufio.NewReaderSize(log, 64<<10), member: member, inside: member == ""}
}

func (o *outputs) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		line, err := o.log.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			err = nil
		}
		if len(line) == 0 && err != nil {
			return 0, err
		}
		if o.begins(line) && !o.command && o.inside {
			o.rest = line
		}
		o.within = line[len(line)-1] != '\n'
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// begins looks at the beginning of a line. It is false when the line is the title of a part.
func (o *outputs) begins(line []byte) bool {
	if o.within {
		return true
	}
	if name, title := bytes.CutPrefix(bytes.TrimSpace(line), []byte("== block ")); title && o.member != "" {
		o.inside = bytes.HasSuffix(name, []byte(": "+o.member+" =="))
		return false
	}
	o.command = bytes.HasPrefix(line, []byte("$ ")) || o.command && bytes.HasPrefix(line, []byte("> "))
	return true
}
