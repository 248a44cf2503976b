package first

import (
	"syscall"
	"unsafe"

	"github.com/benchgraph/benchgraph/executor/internal/first/linux"
)

// keyCalls has the number of add_key for each architecture of a program: the kernel's own and its 32-bit one.
// request_key and keyctl have the next two numbers.
var keyCalls = [...]struct{ arch, first uint32 }{
	{linux.AUDIT_ARCH_X86_64, 248}, {linux.AUDIT_ARCH_I386, 286},
	{linux.AUDIT_ARCH_AARCH64, 217}, {linux.AUDIT_ARCH_ARM, 309},
}

// withoutKeys makes the system calls for keys fail with ENOSYS for this thread, and so for the program. Key rings
// belong to a user and to the session in which benchgraph was started, not to a namespace: a program could read the
// keys of that session and of earlier programs. The filter checks only numbers, so the kernel computes its answers in
// advance and other system calls cost nothing.
func withoutKeys() (step string, err error) {
	const (
		load   = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS
		mask   = syscall.BPF_ALU | syscall.BPF_AND | syscall.BPF_K
		answer = syscall.BPF_RET | syscall.BPF_K
		jump   = syscall.BPF_JMP | syscall.BPF_K
		x32    = 0x40000000 // marks calls with short pointers on x86-64
	)
	filter := []syscall.SockFilter{{Code: load, K: 4}} // the architecture in struct seccomp_data
	for _, c := range keyCalls {
		filter = append(filter,
			syscall.SockFilter{Code: jump | syscall.BPF_JEQ, K: c.arch, Jf: 6}, // to the next architecture
			syscall.SockFilter{Code: load, K: 0},                               // the number of the call
			syscall.SockFilter{Code: mask, K: ^uint32(x32)},
			syscall.SockFilter{Code: jump | syscall.BPF_JGE, K: c.first, Jf: 2},
			syscall.SockFilter{Code: jump | syscall.BPF_JGT, K: c.first + 2, Jt: 1},
			syscall.SockFilter{Code: answer, K: linux.SECCOMP_RET_ERRNO | uint32(syscall.ENOSYS)},
			syscall.SockFilter{Code: answer, K: linux.SECCOMP_RET_ALLOW})
	}
	filter = append(filter, syscall.SockFilter{Code: answer, K: linux.SECCOMP_RET_ALLOW})
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without this flag, older kernels would also switch on mitigations that slow the program down.
	_, _, errno := syscall.RawSyscall(linux.SYS_SECCOMP, linux.SECCOMP_SET_MODE_FILTER,
		linux.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return "keep a program from the keys of the session", errno
	}
	return "", nil
}
