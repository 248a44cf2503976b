// Package head keeps the beginning of the output of foreign programs and servers.
package head

// Buffer keeps the first Most bytes that are written to it and discards the rest. Write never fails, so that no
// program is blocked or ended because of its output. Buffer does not embed bytes.Buffer: io.Copy, and so os/exec,
// would use its ReadFrom instead of Write.
type Buffer struct {
	Most int
	Over func() // called by each Write that discards bytes; may be nil

	text []byte
}

func (b *Buffer) Write(p []byte) (int, error) {
	kept := min(len(p), b.Most-len(b.text))
	b.text = append(b.text, p[:kept]...)
	if kept < len(p) && b.Over != nil {
		b.Over()
	}
	return len(p), nil
}

// Bytes returns the kept bytes.
func (b *Buffer) Bytes() []byte { return b.text }
