package executor

import (
	"fmt"

	"github.com/benchgraph/benchgraph/executor/internal/refusal"
)

// StandardSandbox is the word of blocks that say nothing of a sandbox.
const StandardSandbox = "default"

// SandboxSettings returns all that decides whether this process can make a sandbox, and with which limits, at much less
// than the cost of making one: while the text stays the same, CheckSandbox and Enforced give the same answers.
func SandboxSettings() string {
	limits, err := Enforced()
	return refusal.Settings() + fmt.Sprintln(LandlockVersion(), limits, err)
}
