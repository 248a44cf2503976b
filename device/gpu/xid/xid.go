// Package xid tells the critical errors of NVIDIA devices apart by their numbers.
package xid

import "fmt"

// harmless are the critical errors after which a device is still sound. All but one are reported of a faulty program,
// or of one that was ended: they are its own affair, and who judges it must see its failure. These are the ones that
// NVIDIA's own health check passes over (k8s-device-plugin, internal/rm/health.go: "Application errors: the GPU should
// still be healthy"). The other one, 63, NVIDIA's catalogue answers with "ignore"
// (https://docs.nvidia.com/deploy/xid-errors): memory was set aside, and an error that nothing could correct is told by
// itself, as 48, 94 or 95.
//
// After any other, nobody knows whether what was measured is right, nor what comes next.
var harmless = map[uint64]string{
	13:  "graphics engine exception",
	31:  "page fault",
	43:  "stopped processing",
	45:  "preemptive cleanup",
	63:  "memory set aside",
	68:  "video decoder exception",
	109: "context switch timeout",
}

// grave names some of the others, for people.
var grave = map[uint64]string{
	48:  "uncorrectable memory error",
	64:  "memory could not be set aside",
	74:  "NVLink error",
	79:  "fallen off the bus",
	92:  "high rate of memory errors",
	94:  "contained memory error",
	95:  "uncontained memory error",
	119: "its firmware does not answer",
	120: "error of its firmware",
	140: "unrecoverable memory error",
	154: "to be reset",
}

// Explain names a critical error, and says whether the device is to blame.
func Explain(code uint64) (text string, blamed bool) {
	what, ok := harmless[code]
	if !ok {
		what = grave[code]
	}
	text = fmt.Sprintf("Xid %d", code)
	if what != "" {
		text += " (" + what + ")"
	}
	return text, !ok
}
