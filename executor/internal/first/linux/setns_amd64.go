package linux

// SYS_SETNS is the number of setns(2), which package syscall lacks here.
const SYS_SETNS = 308
