package linux

// The numbers of setns(2) and seccomp(2), which package syscall lacks here.
const (
	SYS_SETNS   = 308
	SYS_SECCOMP = 317
)
