package device

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Ports are chosen below those that the kernel gives to outgoing connections (from 32768 on Linux): a server that loads
// a model for minutes before it listens would else find its port taken by some client of anything.
const (
	lowPort  = 20000
	highPort = 32768
	maxPorts = 1024 // in one request
	keepPort = 512  // ports that are not given again at once, because clients of the last owner may still knock
)

// ports grants free TCP ports on the loopback interface.
type ports struct {
	leased map[int]bool
	recent []int // given back, oldest first
}

func newPorts() ports { return ports{leased: map[int]bool{}} }

func (p *ports) take(n int) ([]int, *Refusal) {
	var taken []int
	for range n {
		port := p.find()
		if port == 0 {
			p.give(taken)
			return nil, &Refusal{WaitsFor: fmt.Sprintf("%d free ports", n)}
		}
		p.leased[port] = true
		taken = append(taken, port)
	}
	return taken, nil
}

// find returns a port that is free now, or 0. Nothing keeps it free: a server cannot be handed a socket in general.
func (p *ports) find() int {
	for range 4096 {
		port := lowPort + rand.IntN(highPort-lowPort)
		if !p.leased[port] && !slices.Contains(p.recent, port) && free(port) {
			return port
		}
	}
	return 0
}

func (p *ports) give(given []int) {
	for _, port := range given {
		delete(p.leased, port)
	}
	p.recent = append(p.recent, given...)
	if extra := len(p.recent) - keepPort; extra > 0 {
		p.recent = slices.Delete(p.recent, 0, extra)
	}
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
