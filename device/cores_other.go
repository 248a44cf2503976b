//go:build !linux

package device

// Cores are the numbers of the cores that this process may use; nil: this system does not number them.
func Cores() []int { return nil }
