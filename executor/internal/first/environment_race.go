//go:build race

package first

// Environment keeps the race detector from a second of sleep at the end of each process.
const Environment = "GORACE=atexit_sleep_ms=10"
