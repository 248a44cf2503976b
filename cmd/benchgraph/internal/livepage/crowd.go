package livepage

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// crowd bounds the number of open connections. A new one too many takes the place of the one that has waited longest
// for a request, so that idle connections keep nobody out. Where all others are being answered, the new one is closed.
type crowd struct {
	mu      sync.Mutex
	open    int
	waiting []net.Conn // without a request, the longest first
}

// note is called by the server when the state of a connection changes.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w net.Conn) bool { return w == conn })
	switch state {
	case http.StateNew:
		c.open++
		c.waiting = append(c.waiting, conn)
	case http.StateIdle:
		c.waiting = append(c.waiting, conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
	}
	if state == http.StateNew && c.open > mostOpen {
		c.waiting[0].Close() // the server notices, and says so here
		c.waiting = c.waiting[1:]
	}
}
