//go:build !linux

package device

// Cores returns nil: this system does not number cores.
func Cores() []int { return nil }
