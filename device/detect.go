package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Names of the providers that Detect may return.
const (
	ProviderNvidiaSMI = "nvidia-smi"
	ProviderNone      = "none"
)

const (
	// A driver that hangs must not hang a plan.
	detectTime = 20 * time.Second
	maxSMI     = 1 << 20 // bytes of output that are read
)

// Detect returns the GPUs of this machine in the order of their index, who told of them, and, when that is nobody, why.
func Detect(ctx context.Context) (devices []Device, provider, reason string) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, ProviderNone, "nvidia-smi is not in PATH: there is no NVIDIA driver, or it is installed elsewhere"
	}
	ctx, cancel := context.WithTimeout(ctx, detectTime)
	defer cancel()
	var out, problem limited
	cmd := exec.CommandContext(ctx, path, "--query-gpu=index,uuid,name,memory.total,memory.used", "--format=csv,noheader,nounits")
	cmd.Stdout, cmd.Stderr = &out, &problem
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, ProviderNone, fmt.Sprintf("nvidia-smi: %v: %s", err, firstLine(out.String()+problem.String()))
	}
	devices, err = parseSMI(out.String())
	if err != nil {
		return nil, ProviderNone, fmt.Sprintf("nvidia-smi: %v", err)
	}
	if len(devices) == 0 {
		return nil, ProviderNone, "nvidia-smi lists no device"
	}
	return devices, ProviderNvidiaSMI, ""
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
}

func (l *limited) Write(b []byte) (int, error) {
	l.Buffer.Write(b[:min(len(b), maxSMI-l.Len())])
	return len(b), nil
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return fmt.Sprintf("%.200s", line)
		}
	}
	return "no output"
}

// parseSMI reads lines of index, UUID, name, and total and used MiB. The name may contain commas, as nothing is quoted.
func parseSMI(text string) ([]Device, error) {
	var all []Device
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		f := strings.Split(line, ", ")
		n := len(f)
		if n < 5 {
			return nil, fmt.Errorf("%.200q is not index, UUID, name, total and used memory", line)
		}
		index, err := strconv.Atoi(f[0])
		total, err2 := mebibytes(f[n-2])
		if err := errors.Join(err, err2); err != nil || index < 0 || f[1] == "" {
			return nil, fmt.Errorf("%.200q is not index, UUID, name, total and used memory", line)
		}
		used, err := mebibytes(f[n-1])
		if err != nil {
			used = 0 // [N/A] where the driver does not tell
		}
		all = append(all, Device{Index: index, UUID: f[1], Name: strings.Join(f[2:n-2], ", "), Memory: total, Used: used})
	}
	return all, nil
}

func mebibytes(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, fmt.Errorf("%.40q is not an amount of MiB", text)
	}
	return n << 20, nil
}
