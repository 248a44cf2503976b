// Package family knows all processes that descend from a program on the host, and ends them. It is for programs without
// a PID namespace: the kernel ends such a namespace with its first process.
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

// MarkName is the environment variable by which descendants are known.
const MarkName = "BENCHGRAPH_PROC"

// Starter is a process that started others: its text is NAMESPACE.PID.BORN.
type Starter struct {
	Namespace string // of process numbers: PID means nothing outside of it; 0: not known
	PID       int
	Born      uint64 // its start, in clock ticks since boot, because numbers are used again; 0: not known
}

// This is this process.
func This() Starter {
	s := Starter{Namespace: pidNamespace(), PID: os.Getpid()}
	s.Born, _ = bornOf(s.PID) // not known: nobody reaps what it left, and New will say what is wrong
	return s
}

func (s Starter) String() string { return fmt.Sprintf("%s.%d.%d", s.Namespace, s.PID, s.Born) }

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

// Mark says who started a program: its text is OWNER.STARTER.ID.
type Mark struct {
	owner string // 16 digits of the SHA-256 of what the program belongs to
	Starter
	id string // random, for each program; empty in a Host
}

// NewMark returns the mark of what this process starts for an owner.
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

// Variable is the variable that a program gets, as NAME=value.
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
