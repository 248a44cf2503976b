//go:build race

package first

import (
	"os"
	"syscall"
)

// Program is the file of the first process: this program, or one without the race detector that a test names. A
// process with the detector takes about 60 ms to start, and a command in a sandbox starts one or two.
func Program() string {
	if named := os.Getenv("BENCHGRAPH_TEST_PROGRAM"); named != "" && syscall.Access(named, 1) == nil {
		return named
	}
	return "/proc/self/exe"
}

// Environment is the whole environment of the first process. It avoids the race detector's sleep of one second at the
// end of each process.
const Environment = "GORACE=atexit_sleep_ms=10"
