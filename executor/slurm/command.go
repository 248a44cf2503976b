package slurm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/internal/head"
	"github.com/benchgraph/benchgraph/internal/printable"
)

const (
	// answerTime limits a command. If the controller is away, a command gives up after 9 s.
	answerTime = time.Minute
	// mostOutput limits the output of a command; a job takes 100 bytes of the queue.
	mostOutput = 64 << 20
	mostWords  = 1000
)

// failure is the error of a command that failed.
type failure struct {
	command string
	words   string // of its standard error, in one line
	err     error
}

func (f *failure) Error() string {
	if f.words == "" {
		return fmt.Sprintf("%s: %v", f.command, f.err)
	}
	return f.command + ": " + f.words
}

func (f *failure) Unwrap() error { return f.err }

// call is one run of a command.
type call struct {
	name    string
	args    []string
	stdin   string
	environ []string // entries that end with a zero byte, read from file 3; nil: no such file
}

// run runs one of Slurm's commands and returns its standard output. Ctrl-C in a terminal does not reach the command.
func (c *Cluster) run(ctx context.Context, a call) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer within %s", answerTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.programs[a.name], a.args...)
	cmd.Env = environ(c.o.Environ)
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(a.stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	out, words := head.Buffer{Most: mostOutput}, head.Buffer{Most: 8 << 10}
	cmd.Stdout, cmd.Stderr = &out, &words
	if a.environ != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return "", &failure{command: a.name, err: err}
		}
		defer r.Close() // unblocks the writer
		cmd.ExtraFiles = []*os.File{r}
		go func() {
			defer w.Close()
			w.WriteString(strings.Join(append(slices.Clone(a.environ), ""), "\x00"))
		}()
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), cmp.Or(err, ctx.Err()))
	}
	if err == nil && len(out.Bytes()) == mostOutput {
		err = fmt.Errorf("more than %d bytes", mostOutput)
	}
	if err != nil {
		return "", &failure{a.name, clean(a.name, string(words.Bytes())), err}
	}
	return string(out.Bytes()), nil
}

// environ removes variables that change the behaviour or output of Slurm's commands, such as those of a job in which
// benchgraph itself runs.
func environ(all []string) []string {
	kept := []string{"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_CLUSTERS", "SBATCH_ACCOUNT",
		"SBATCH_PARTITION", "SBATCH_QOS", "SBATCH_RESERVATION"}
	env := slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		family, _, _ := strings.Cut(name, "_")
		switch family {
		case "SLURM", "SBATCH", "SQUEUE", "SCANCEL", "SCONTROL", "SACCT", "LC", "LANG", "LANGUAGE":
			return !slices.Contains(kept, name)
		}
		return false
	})
	return append(env, "SLURM_TIME_FORMAT=%s", "LC_ALL=C")
}

// clean returns the messages of a command as one line, without their prefixes.
func clean(name, words string) string {
	var lines []string
	for line := range strings.Lines(words) {
		line = strings.TrimPrefix(printable.Line(line), name+": ")
		line = strings.TrimPrefix(strings.TrimPrefix(line, "error: "), "fatal: ")
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return printable.Clip(strings.Join(lines, "; "), mostWords)
}

// Temporary troubles.
const (
	silent = "slurm: the cluster does not answer; benchgraph asks again and again"
	full   = "slurm: the cluster takes no more jobs for now; benchgraph submits them when others have ended"
)
