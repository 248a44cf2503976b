package executor

import (
	"fmt"

	"github.com/benchgraph/benchgraph/executor/internal/refusal"
)

// StandardSandbox is the value of sandbox for blocks that do not set it.
const StandardSandbox = "default"

// SandboxSettings returns all settings that decide whether this process can make a sandbox, and with which limits. It
// is much cheaper than making one. While the text stays the same, CheckSandbox and Enforced return the same results.
func SandboxSettings() string {
	limits, err := Enforced()
	return refusal.Settings() + fmt.Sprintln(LandlockVersion(), limits, err)
}
