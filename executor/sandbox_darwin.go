package executor

import "context"

// StandardSandbox is the word of blocks that say nothing of a sandbox.
const StandardSandbox = "none"

// SandboxSettings returns nothing: no setting of this system makes a sandbox.
func SandboxSettings() string { return "" }

// CheckSandbox says why commands cannot have a Sandbox: this system has no namespaces.
func CheckSandbox() error {
	return &Unsupported{
		What: "a sandbox, which needs the namespaces of Linux", Remedy: `say sandbox = "none", or give each block an image`,
	}
}

func startSandboxed(context.Context, Command) (Process, error) { return nil, CheckSandbox() }
