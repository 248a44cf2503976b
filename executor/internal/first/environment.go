//go:build !race

package first

// Environment is all that the first process has of one. It is no place for what the program is told.
const Environment = "GOMAXPROCS=2"
