package executor

import (
	"errors"
	"fmt"

	"github.com/benchgraph/benchgraph/device/gpu/node"
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

// DeviceNodes returns the nodes below /dev that programs need for the GPUs with these UUIDs.
func DeviceNodes(gpus []string) ([]string, error) {
	nodes, err := node.Of(gpus)
	if unknown, ok := errors.AsType[*node.Unknown](err); ok {
		return nil, &Unsupported{
			What:   "a sandbox with device " + unknown.UUID + ", whose node below /dev the driver does not tell",
			Remedy: `say sandbox = "none" in blocks with gpus`,
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return nodes, nil
}
