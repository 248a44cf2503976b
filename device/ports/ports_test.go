package ports

import (
	"net"
	"testing"
)

// A port that another process uses is not free, and neither is a list that contains it.
func TestFree(t *testing.T) {
	var p Ports
	granted, ok := p.Take(2)
	if !ok || !Free(granted) || !Free(nil) {
		t.Fatalf("%v: granted %v, and not free", granted, ok)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: granted[1]})
	if err != nil {
		t.Fatal(err)
	}
	if Free(granted) || !Free(granted[:1]) {
		t.Errorf("%v: the second is taken", granted)
	}
	if err := l.Close(); err != nil || !Free(granted) {
		t.Errorf("%v are free again, and are not: %v", granted, err)
	}
}
