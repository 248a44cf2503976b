package gpu

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu/link"
	"github.com/benchgraph/benchgraph/device/process"
	"github.com/benchgraph/benchgraph/internal/head"
)

// maxSMI limits the output that is read, in bytes.
const maxSMI = 1 << 20

// smiSource queries the driver with nvidia-smi, for machines where the library cannot be loaded.
type smiSource struct {
	path    string
	open    context.Context // ends all readings
	end     func()
	running sync.RWMutex // held for reading during a query
}

var errNoProgram = errors.New("nvidia-smi is not in PATH")

// openSMI lists the devices that nvidia-smi reports.
func openSMI(ctx context.Context) (answer, error) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return answer{}, errNoProgram
	}
	s := &smiSource{path: path}
	s.open, s.end = context.WithCancel(context.Background())
	out, err := s.ask(ctx, "--query-gpu=index,uuid,name,memory.total,memory.used")
	if err != nil {
		return answer{}, err
	}
	d := answer{Provider: ProviderNvidiaSMI, source: s}
	all, err := parseSMI(out)
	if err != nil {
		return answer{}, fmt.Errorf("nvidia-smi: %w", err)
	}
	modes, _ := s.ask(ctx, "--query-gpu=uuid,mig.mode.current") // drivers without MIG reject the query
	for _, dev := range all {
		if strings.Contains(modes, dev.UUID+", Enabled") { // no query reports the memory of its instances
			d.Odd = append(d.Odd, fmt.Sprintf("device %d is in MIG mode, and only NVML tells of its instances: "+
				"install libnvidia-ml.so.1, or name it with BENCHGRAPH_NVML", dev.Index))
		} else {
			d.devices = append(d.devices, dev)
		}
	}
	if out, err := s.ask(ctx, "--query-gpu=driver_version"); err == nil {
		d.Version = firstLine(out)
	}
	return d, nil
}

// ask runs one query and returns lines of comma-separated values.
func (s *smiSource) ask(ctx context.Context, args ...string) (string, error) {
	s.running.RLock()
	defer s.running.RUnlock()
	ctx, cancel := context.WithTimeoutCause(ctx, silence, errSilent) // a hanging driver must not block a plan
	defer cancel()
	out, problem := head.Buffer{Most: maxSMI}, head.Buffer{Most: maxSMI}
	cmd := exec.CommandContext(ctx, s.path, append(args, "--format=csv,noheader,nounits")...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			// the device does not exist or is off the bus, see nvidia-smi(1)
		} else if n := cmd.ProcessState.ExitCode(); n == 6 || n == 15 {
			err = ErrGone
		}
		return "", fmt.Errorf("nvidia-smi: %w: %s", err, firstLine(string(out.Bytes())+string(problem.Bytes())))
	}
	return string(out.Bytes()), nil
}

func (s *smiSource) link(_, _ Device) link.Link { return link.Link{} }

// close ends running queries and waits until they have ended, at most a second: the driver may block them.
func (s *smiSource) close(bool) {
	s.end()
	ended := make(chan struct{})
	go func() {
		s.running.Lock()
		defer s.running.Unlock()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
}

// read reads a device's memory, utilization, temperature, power and clock, and its processes.
func (s *smiSource) read(d Device) (Reading, error) {
	r := Reading{Processes: []process.Process{}}
	out, err := s.ask(s.open, "--id="+d.UUID,
		"--query-gpu=memory.used,utilization.gpu,temperature.gpu,power.draw,clocks.sm")
	if err != nil {
		return r, err
	}
	f := strings.Split(strings.TrimSpace(out), ", ")
	if len(f) != 5 {
		return r, fmt.Errorf("nvidia-smi answers %.200q, which is not understood", out)
	}
	r.Used, _ = mebibytes(f[0]) // unknown values stay empty
	r.Utilization, r.Temperature, r.SMClock = whole(f[1]), whole(f[2]), whole(f[4])
	if watts, err := strconv.ParseFloat(f[3], 64); err == nil {
		r.Power = &watts
	}
	out, err = s.ask(s.open, "--id="+d.UUID, "--query-compute-apps=pid,used_memory")
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(out) {
		pid, used, _ := strings.Cut(strings.TrimSpace(line), ", ")
		if n, err := strconv.Atoi(pid); err == nil {
			bytes, _ := mebibytes(used)
			r.Processes = append(r.Processes, process.Process{PID: n, Used: bytes})
		}
	}
	return r, nil
}

func whole(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return fmt.Sprintf("%.200s", line)
		}
	}
	return "no output"
}

// parseSMI parses lines of index, UUID, name, total and used MiB. The name may contain commas, as nothing is quoted.
func parseSMI(text string) ([]Device, error) {
	var all []Device
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
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
		used, _ := mebibytes(f[n-1]) // [N/A] if the driver does not report it
		all = append(all, Device{Index: index, UUID: f[1], NUMA: -1, Name: strings.Join(f[2:n-2], ", "), Memory: total,
			Used: used})
	}
	if len(all) == 0 {
		return nil, errors.New("it lists no device")
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
