// Package xid reads the critical errors of NVIDIA devices, and explains them by their numbers.
package xid

import "fmt"

// harmless are the critical errors after which a device is still sound. All but one are caused by a program that is
// faulty or was killed: its failure is handled elsewhere. NVIDIA's own health check ignores these errors, too
// (k8s-device-plugin, internal/rm/health.go: "Application errors: the GPU should still be healthy"). For the
// remaining one, 63, NVIDIA's catalogue recommends "ignore" (https://docs.nvidia.com/deploy/xid-errors): memory was
// set aside, and an uncorrectable error is reported separately as 48, 94 or 95.
//
// After any other error, measurements on the device cannot be trusted.
var harmless = map[uint64]string{
	13:  "graphics engine exception",
	31:  "page fault",
	43:  "stopped processing",
	45:  "preemptive cleanup",
	63:  "memory set aside",
	68:  "video decoder exception",
	109: "context switch timeout",
}

// grave describes some of the other errors.
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

// Explain describes a critical error, and reports whether the device is to blame.
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
