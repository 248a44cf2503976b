package fs

import "io"

const copiedAtOnce = 256 << 10 // bytes

// CopyBoth copies r to w and to h. It writes to h in a separate goroutine.
func CopyBoth(w, h io.Writer, r io.Reader) (int64, error) {
	type chunk struct {
		bytes []byte
		n     int
	}
	free, full, hashed := make(chan []byte, 3), make(chan chunk, 3), make(chan struct{})
	go func() {
		defer close(hashed)
		for c := range full {
			_, _ = h.Write(c.bytes[:c.n])
			free <- c.bytes
		}
	}()
	total := int64(0)
	var failed error
	for made := 0; failed == nil; {
		var b []byte
		select {
		case b = <-free:
		default:
			if made < cap(free) {
				b, made = make([]byte, copiedAtOnce), made+1
			} else {
				b = <-free
			}
		}
		n, err := io.ReadFull(r, b)
		if n > 0 {
			if _, writing := w.Write(b[:n]); writing != nil {
				failed = writing
			}
			full <- chunk{b, n}
		}
		total += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		} else if failed == nil {
			failed = err
		}
	}
	close(full)
	<-hashed
	return total, failed
}
