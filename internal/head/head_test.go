package head

import (
	"os/exec"
	"testing"
)

// A program that writes more than is kept goes on to its end.
func TestTheRestIsDiscarded(t *testing.T) {
	b := Buffer{Most: 5}
	cmd := exec.Command("sh", "-c", "printf abc; head -c 1000000 /dev/zero | tr '\\0' d")
	cmd.Stdout = &b
	if err := cmd.Run(); err != nil || string(b.Bytes()) != "abcdd" {
		t.Errorf("%d bytes that begin with %.10q, %v", len(b.Bytes()), b.Bytes(), err)
	}
}
