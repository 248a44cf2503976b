package applylock

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// born returns when a process started, in clock ticks since the boot of the machine.
func born(pid int) (uint64, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The second field is the program's name in parentheses, which may hold anything; the start is the 22nd.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return ticks, err == nil
}

// boot returns the ID of the machine's boot.
func boot() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // empty: unknown
	return string(bytes.TrimSpace(text))
}
