package sample

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
)

// SeedVariable is the variable by which a command learns its seed.
const SeedVariable = "BENCHGRAPH_SEED"

// Seeds are numbers from which the command of a benchmark may draw what it asks for, one for each of its runs beside a
// server: those of warm-ups, of passes and of the check. Each is drawn when the first member of a block needs it, and
// all members have the same. So no server can work out its answers before they are asked for: neither while it starts,
// which is not measured, nor in an earlier run.
type Seeds []uint32

// At is the seed of a run, from 0, as its command sees it. It fits into a signed number of 32 bits, which is what many
// programs take.
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
