//go:build !race

package first

// Program is the file of the first process: this program.
func Program() string { return "/proc/self/exe" }

// Environment is all that the first process has of one. It is no place for what the program is told.
const Environment = "GOMAXPROCS=2"
