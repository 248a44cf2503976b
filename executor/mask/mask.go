// Package mask replaces secrets in a stream of text.
package mask

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

// maskText replaces each secret. Its length is fixed and so does not reveal the secret's length.
const maskText = "***"

// Writer passes its input to another writer and replaces each secret with ***. Overlapping secrets are replaced
// together, so that no part of them remains. Writer holds back only bytes that may begin a secret; Close writes them,
// but does not close the other writer. Space around a secret is not part of it, since programs often trim it; empty
// secrets are ignored.
type Writer struct {
	w       io.Writer
	secrets [][]byte
	longest int
	buf     []byte // held back
	done    int    // length of the beginning of buf that belongs to a replaced secret
	spans   []span
	out     []byte
}

// span is the position of a secret.
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

// Write passes on the part of its input that cannot be the beginning of a secret.
func (m *Writer) Write(b []byte) (int, error) {
	if len(m.secrets) == 0 {
		return m.w.Write(b)
	}
	data := b // avoids a copy: most writes hold nothing back
	if len(m.buf) > 0 {
		m.buf = append(m.buf, b...)
		data = m.buf
	}
	if err := m.flush(data, m.decided(data)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close writes the bytes that were held back.
func (m *Writer) Close() error {
	return m.flush(m.buf, len(m.buf))
}

// decided returns the position of the first possible secret that may continue beyond data.
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
