package sample

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
)

// SeedVariable is the environment variable that holds the seed of a command.
const SeedVariable = "BENCHGRAPH_SEED"

// Seeds are seeds from which the command of a benchmark may draw its requests. Each run beside a server has one: each
// warm-up, each pass and the check. A seed is drawn when the first member of a block needs it, and all members of the
// block use the same. So no server can compute its answers before the requests: neither while it starts, which is not
// measured, nor in an earlier run.
type Seeds []uint32

// At returns the seed of a run, counted from 0, as text. It fits into a signed number of 32 bits, which many programs
// require.
func (s *Seeds) At(run int) string {
	if s == nil { // nothing is measured
		s = new(Seeds)
	}
	for len(*s) <= run {
		var random [4]byte
		_, _ = rand.Read(random[:]) // it never fails
		*s = append(*s, binary.BigEndian.Uint32(random[:])>>1)
	}
	return strconv.FormatUint(uint64((*s)[run]), 10)
}
