package executor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// markName is the environment variable by which descendants are known.
const markName = "BENCHGRAPH_PROC"

// mark says who started a program: its text is OWNER.NAMESPACE.PID.BORN.ID.
type mark struct {
	owner     string // 16 digits of the SHA-256 of HostOptions.Owner
	namespace string // of process numbers: PID means nothing outside of it; 0: not known
	pid       int    // of the process that started it
	born      uint64 // its start, in clock ticks since boot, because numbers are used again
	id        string // random, for each program; empty in a Host
}

func newMark(owner string) mark {
	m := mark{owner: ownerHash(owner), namespace: pidNamespace(), pid: os.Getpid()}
	m.born, _ = bornOf(m.pid) // not known: nobody reaps it, and Start will say what is wrong
	return m
}

func ownerHash(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8])
}

// next returns the text of a mark for one more program.
func (m mark) next() string {
	m.id = rand.Text()
	return m.String()
}

func (m mark) String() string {
	return fmt.Sprintf("%s.%s.%d.%d.%s", m.owner, m.namespace, m.pid, m.born, m.id)
}

// sameStarter says whether both marks are of programs that the same process started.
func (m mark) sameStarter(o mark) bool {
	return m.namespace == o.namespace && m.pid == o.pid && m.born == o.born
}

func parseMark(text string) (mark, bool) {
	f := strings.Split(text, ".")
	if len(f) != 5 {
		return mark{}, false
	}
	pid, err := strconv.Atoi(f[2])
	born, err2 := strconv.ParseUint(f[3], 10, 64)
	if err != nil || err2 != nil || pid <= 0 || born == 0 || len(f[0]) != 16 || f[4] == "" {
		return mark{}, false
	}
	return mark{owner: f[0], namespace: f[1], pid: pid, born: born, id: f[4]}, true
}
