package executor

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

// maskText stands for a secret. Its length is fixed, so that it does not tell the length of what it hides.
const maskText = "***"

// Masker is a writer that passes everything on, with each secret replaced by ***. Secrets that overlap are replaced
// together, so that no part of any of them remains. It holds back only what may be the beginning of a secret; Close
// passes that on, too, but does not close the writer below. Space around a secret is not part of it, as programs tend
// to trim it; empty secrets are ignored.
type Masker struct {
	w       io.Writer
	secrets [][]byte
	longest int
	buf     []byte // not yet passed on
	done    int    // how much of the start of buf belongs to a secret that was already replaced
	spans   []span
	out     []byte
}

// span is where a secret lies in the buffer.
type span struct{ start, end int }

// NewMasker returns a Masker that writes to w.
func NewMasker(w io.Writer, secrets []string) *Masker {
	m := &Masker{w: w}
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
func (m *Masker) Write(b []byte) (int, error) {
	if len(m.secrets) == 0 {
		return m.w.Write(b)
	}
	m.buf = append(m.buf, b...)
	if err := m.flush(m.decided()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close passes on what was held back.
func (m *Masker) Close() error {
	return m.flush(len(m.buf))
}

// decided returns where the first secret may start that has not come to its end.
func (m *Masker) decided() int {
	for i := max(0, len(m.buf)-m.longest+1); i < len(m.buf); i++ {
		for _, s := range m.secrets {
			if rest := m.buf[i:]; len(rest) < len(s) && bytes.HasPrefix(s, rest) {
				return i
			}
		}
	}
	return len(m.buf)
}

// flush passes on the first n bytes of buf.
func (m *Masker) flush(n int) error {
	m.out = m.out[:0]
	for _, s := range m.find(n) {
		if s.start >= m.done {
			m.out = append(m.out, m.buf[m.done:s.start]...)
			m.out = append(m.out, maskText...)
		}
		m.done = max(m.done, s.end)
	}
	if m.done < n {
		m.out = append(m.out, m.buf[m.done:n]...)
		m.done = n
	}
	m.done -= n
	m.buf = append(m.buf[:0], m.buf[n:]...)
	if len(m.out) == 0 {
		return nil
	}
	_, err := m.w.Write(m.out)
	return err
}

// find returns all secrets that start in the first n bytes of buf, in order.
func (m *Masker) find(n int) []span {
	m.spans = m.spans[:0]
	for _, s := range m.secrets {
		for at := 0; ; at++ {
			i := bytes.Index(m.buf[at:], s)
			if at += i; i < 0 || at >= n {
				break
			}
			m.spans = append(m.spans, span{at, at + len(s)})
		}
	}
	slices.SortFunc(m.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return m.spans
}
