// Package output reads the output of commands from the logs of attempts.
package output

import (
	"bufio"
	"bytes"
	"io"
)

// Reader reads only the output of commands from the log of an attempt: it skips the commands themselves, which may
// contain the searched words, and the output of other members of a block.
type Reader struct {
	log     *bufio.Reader
	member  string // member to read; empty: the log has no parts
	inside  bool   // the current line is in the member's part
	within  bool   // the next bytes belong to the current line
	command bool   // the current line is part of a command
	rest    []byte // of the current line, to be returned
}

// NewReader returns a reader of the output of one member of a block; of all commands if member is empty.
func NewReader(log io.Reader, member string) *Reader {
	return &Reader{log: bufio.NewReaderSize(log, 64<<10), member: member, inside: member == ""}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.log.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			err = nil
		}
		if len(line) == 0 && err != nil {
			return 0, err
		}
		if r.begins(line) && !r.command && r.inside {
			r.rest = line
		}
		r.within = line[len(line)-1] != '\n'
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// begins notes the state at the beginning of a line. It returns false for the title of a part.
func (r *Reader) begins(line []byte) bool {
	if r.within {
		return true
	}
	if name, title := bytes.CutPrefix(bytes.TrimSpace(line), []byte("== block ")); title && r.member != "" {
		r.inside = bytes.HasSuffix(name, []byte(": "+r.member+" =="))
		return false
	}
	r.command = bytes.HasPrefix(line, []byte("$ ")) || r.command && bytes.HasPrefix(line, []byte("> "))
	return true
}
