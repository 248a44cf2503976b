package output

import "testing"

// A pattern matches a line however it is split into writes, and never across lines.
func TestAWatchSeesItsLine(t *testing.T) {
	w := NewWatch(`^listening on \d+`)
	for _, piece := range []string{"not listening on 1\nlist", "ening\n on 2\nlistening on", " "} {
		if _, err := w.Write([]byte(piece)); err != nil || w.Hit() {
			t.Fatalf("after %q: %v, %t", piece, err, w.Hit())
		}
	}
	if _, err := w.Write([]byte("4711 now")); err != nil || !w.Hit() {
		t.Fatalf("%v, %t", err, w.Hit())
	}
	<-w.Seen()
	var none *Watch
	if none.Seen() != nil {
		t.Error("without a watch, something is seen")
	}
}
