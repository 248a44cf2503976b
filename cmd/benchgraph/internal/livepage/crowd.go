package livepage

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// crowd limits the number of open connections. A new connection beyond the limit replaces the one that has been idle
// for longest, so that idle connections keep nobody out. If all others are being answered, the new one is closed.
type crowd struct {
	mu      sync.Mutex
	open    int
	waiting []net.Conn // connections without a request, the longest waiting first
}

// note is the server's ConnState hook.
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
		c.waiting[0].Close() // the server will call note for it
		c.waiting = c.waiting[1:]
	}
}
