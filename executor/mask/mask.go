// Package mask replaces secrets in a stream of text.
package mask

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

// maskText stands for a secret. Its length is fixed, so that it does not tell the length of what it hides.
const maskText = "***"

// Writer is a writer that passes everything on, with each secret replaced by ***. Secrets that overlap are replaced
// together, so that no part of any of them remains. It holds back only what may be the beginning of a secret; Close
// passes that on, too, but does not close the writer below. Space around a secret is not part of it, as programs tend
// to trim it; empty secrets are ignored.
type Writer struct {
	w       io.Writer
	secrets [][]byte
	longest int
	buf     []byte // held back
	done    int    // how much of the start of buf belongs to a secret that was already replaced
	spans   []span
	out     []byte
}

// span is where a secret lies.
type span struct{ start, end int }

// New returns a Writer that writes to w.
func New(w io.Writer, secrets []string) *Writer {
	m := &Writer{w: w}
	for _, text := range secrets {
		s := bytes.TrimSpace([]byte(text))
		if len(s) > 0 && !slices.ContainsFunc(m.secrets, func(o []byte) bool { return bytes.Equal(o, s) }) {
			m.secrets = append(m.secrets, s)
			m.longest = max(m.longest, len(s))
		}
	}
	return m
}

// Write passes on all of b that can be decided.
func (m *Writer) Write(b []byte) (int, error) {
	if len(m.secrets) == 0 {
		return m.w.Write(b)
	}
	data := b // most writes hold nothing back: they are passed on without a copy
	if len(m.buf) > 0 {
		m.buf = append(m.buf, b...)
		data = m.buf
	}
	if err := m.flush(data, m.decided(data)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close passes on what was held back.
func (m *Writer) Close() error {
	return m.flush(m.buf, len(m.buf))
}

// decided returns where in data the first secret may start that has not come to its end.
func (m *Writer) decided(data []byte) int {
	for i := max(0, len(data)-m.longest+1); i < len(data); i++ {
		for _, s := range m.secrets {
			if rest := data[i:]; len(rest) < len(s) && bytes.HasPrefix(s, rest) {
				return i
			}
		}
	}
	return len(data)
}

// flush passes on the first n bytes of data and keeps the others.
func (m *Writer) flush(data []byte, n int) error {
	var err error
	if out := m.replace(data, n); len(out) > 0 {
		_, err = m.w.Write(out)
	}
	m.buf = append(m.buf[:0], data[n:]...)
	return err
}

// replace returns the first n bytes of data without the secrets that start there.
func (m *Writer) replace(data []byte, n int) []byte {
	spans := m.find(data, n)
	if len(spans) == 0 && m.done == 0 {
		return data[:n]
	}
	m.out = m.out[:0]
	for _, s := range spans {
		if s.start >= m.done {
			m.out = append(m.out, data[m.done:s.start]...)
			m.out = append(m.out, maskText...)
		}
		m.done = max(m.done, s.end)
	}
	if m.done < n {
		m.out = append(m.out, data[m.done:n]...)
		m.done = n
	}
	m.done -= n
	return m.out
}

// find returns all secrets that start in the first n bytes of data, in order.
func (m *Writer) find(data []byte, n int) []span {
	m.spans = m.spans[:0]
	for _, s := range m.secrets {
		for at := 0; ; at++ {
			i := bytes.Index(data[at:], s)
			if at += i; i < 0 || at >= n {
				break
			}
			m.spans = append(m.spans, span{at, at + len(s)})
		}
	}
	slices.SortFunc(m.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return m.spans
}
