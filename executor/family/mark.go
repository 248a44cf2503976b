// Package family finds all descendants of a program on the host, and ends them. It serves programs without a PID
// namespace: with a namespace, the kernel ends all its processes with the first one.
package family

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MarkName is the environment variable that marks descendants.
const MarkName = "BENCHGRAPH_PROC"

// Starter is a process that started programs. Its text is NAMESPACE.PID.BORN.
type Starter struct {
	Namespace string // PID namespace of PID; 0: not known
	PID       int
	Born      uint64 // start time in clock ticks since boot, because numbers are reused; 0: not known
}

// This returns the Starter of this process.
func This() Starter {
	s := Starter{Namespace: pidNamespace(), PID: os.Getpid()}
	s.Born, _ = bornOf(s.PID) // without it, nothing is reaped, and New will report the error
	return s
}

func (s Starter) String() string { return fmt.Sprintf("%s.%d.%d", s.Namespace, s.PID, s.Born) }

// Boot returns an ID that is new after each start of this machine; empty if the system has none.
func Boot() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// ParseStarter reads the text of a Starter.
func ParseStarter(text string) (Starter, bool) {
	f := strings.Split(text, ".")
	if len(f) != 3 {
		return Starter{}, false
	}
	pid, err := strconv.Atoi(f[1])
	born, err2 := strconv.ParseUint(f[2], 10, 64)
	return Starter{f[0], pid, born}, err == nil && err2 == nil && pid > 0
}

// Mark identifies a program and the process that started it. Its text is OWNER.STARTER.ID.
type Mark struct {
	owner string // first 16 digits of the owner's SHA-256
	Starter
	id string // random for each program; empty in a Host
}

// NewMark returns a mark for programs that this process starts for an owner.
func NewMark(owner string) Mark { return Mark{owner: ownerHash(owner), Starter: This()} }

func ownerHash(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8])
}

// Next returns a mark for one more program.
func (m Mark) Next() Mark {
	m.id = rand.Text()
	return m
}

// Variable returns the environment variable with the mark, as NAME=value.
func (m Mark) Variable() string { return MarkName + "=" + m.String() }

func (m Mark) String() string { return m.owner + "." + m.Starter.String() + "." + m.id }

func parseMark(text string) (Mark, bool) {
	owner, rest, _ := strings.Cut(text, ".")
	end := strings.LastIndexByte(rest, '.')
	if len(owner) != 16 || end < 0 || end == len(rest)-1 {
		return Mark{}, false
	}
	s, ok := ParseStarter(rest[:end])
	if !ok || s.Born == 0 {
		return Mark{}, false
	}
	return Mark{owner, s, rest[end+1:]}, true
}
