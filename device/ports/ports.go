// Package ports grants free TCP ports of the loopback interface.
package ports

import (
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Most is the largest number of ports in one request.
const Most = 1024

// Ports are below the range for outgoing connections (from 32768 on Linux): otherwise an outgoing connection might
// take the port of a server that loads a model for minutes before it listens.
const (
	lowPort  = 20000
	highPort = 32768
	keepPort = 512 // released ports that are not reused yet: clients of the last owner may still connect
)

// Ports is the set of granted ports. The zero value has granted none.
type Ports struct {
	leased map[int]bool
	recent []int // released, oldest first
}

// Take grants n ports, or none if fewer are free.
func (p *Ports) Take(n int) (taken []int, ok bool) {
	for range n {
		port := p.find()
		if port == 0 {
			p.Give(taken)
			return nil, false
		}
		if p.leased == nil {
			p.leased = map[int]bool{}
		}
		p.leased[port] = true
		taken = append(taken, port)
	}
	return taken, true
}

// find returns a port that is free now, or 0. The port is not reserved: most servers cannot inherit a socket.
func (p *Ports) find() int {
	for range 4096 {
		port := lowPort + rand.IntN(highPort-lowPort)
		if !p.leased[port] && !slices.Contains(p.recent, port) && Free([]int{port}) {
			return port
		}
	}
	return 0
}

// Give takes ports back.
func (p *Ports) Give(given []int) {
	for _, port := range given {
		delete(p.leased, port)
	}
	p.recent = append(p.recent, given...)
	if extra := len(p.recent) - keepPort; extra > 0 {
		p.recent = slices.Delete(p.recent, 0, extra)
	}
}

// Free reports whether nobody listens at the ports.
func Free(ports []int) bool {
	return !slices.ContainsFunc(ports, func(port int) bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err != nil || l.Close() != nil
	})
}
