//go:build !race

package first

// Program is the file of the first process: this program.
func Program() string { return "/proc/self/exe" }

// Environment is the whole environment of the first process. The program's environment is in the Spec.
const Environment = "GOMAXPROCS=2"
