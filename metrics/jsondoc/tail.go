package jsondoc

import (
	"bytes"
	"io"
	"slices"
)

// MaxTail is the number of bytes at the end of an output that are searched for a JSON document: 64 MiB.
const MaxTail = 64 << 20

// Copy writes r to the tail, but not the whole of an output that is longer than the tail.
func (t *Tail) Copy(r io.Reader) error {
	_, err := io.Copy(t, io.LimitReader(r, MaxTail+1))
	return err
}

// longestTail is the number of bytes at which a tail is shortened to MaxTail. Each time copies the tail.
const longestTail = MaxTail + MaxTail/4

// Tail is a writer that keeps the last MaxTail bytes.
type Tail struct {
	buf     []byte
	dropped bool
}

func (t *Tail) Write(p []byte) (int, error) {
	if len(t.buf) > MaxTail/4 && cap(t.buf) < longestTail { // else each step of its growth would be another copy of it
		t.buf = slices.Grow(t.buf, longestTail-len(t.buf))
	}
	for rest := p; len(rest) > 0; {
		n := min(len(rest), longestTail-len(t.buf))
		t.buf, rest = append(t.buf, rest[:n]...), rest[n:]
		if len(t.buf) == longestTail {
			t.trim()
		}
	}
	return len(p), nil
}

// Bytes returns the last MaxTail bytes that were written so far. They are valid until the next Write.
func (t *Tail) Bytes() []byte {
	t.trim()
	return t.buf
}

// Dropped reports whether more was written than Bytes returns.
func (t *Tail) Dropped() bool { return t.dropped || len(t.buf) > MaxTail }

func (t *Tail) trim() {
	if extra := len(t.buf) - MaxTail; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
		t.dropped = true
	}
}

type fromBrace struct {
	to   io.Writer
	open bool
}

// FromBrace returns a writer that drops all bytes before the first brace: a log without a document costs no memory.
func FromBrace(to io.Writer) io.Writer { return &fromBrace{to: to} }

func (w *fromBrace) Write(p []byte) (int, error) {
	n := len(p)
	if !w.open {
		at := bytes.IndexByte(p, '{')
		if at < 0 {
			return n, nil
		}
		w.open, p = true, p[at:]
	}
	if _, err := w.to.Write(p); err != nil {
		return 0, err
	}
	return n, nil
}
