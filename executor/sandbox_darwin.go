package executor

import "context"

// StandardSandbox is the value of sandbox for blocks that do not set it.
const StandardSandbox = "none"

// SandboxSettings returns nothing: no setting of this system makes a sandbox.
func SandboxSettings() string { return "" }

// CheckSandbox returns why commands cannot have a Sandbox: this system has no namespaces.
func CheckSandbox() error {
	return &Unsupported{
		What:   "a sandbox, which needs the namespaces of Linux",
		Remedy: `say sandbox = "none", or give each block an image`,
	}
}

type starter struct{}

func (*Host) startSandboxed(context.Context, Command) (Process, error) { return nil, CheckSandbox() }

// Close does nothing on this system.
func (*Host) Close() error { return nil }

// SandboxOf returns how commands with a Sandbox are confined.
func SandboxOf() Confinement { return Unconfined }

// LandlockVersion returns 0: only Linux has Landlock.
func LandlockVersion() int { return 0 }

func behindFence(*process, Command, func() error) (func() error, error) { return nil, CheckSandbox() }

func unstarted(cmd Command, path string, err error) error { return explain(cmd, path, err) }
