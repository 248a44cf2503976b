package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// awaitTurn waits for the turn of a key: submissions of one key run one after another. The returned function ends the
// turn.
func (c *Cluster) awaitTurn(ctx context.Context, key string) (func(), error) {
	taken, _ := c.turns.LoadOrStore(key, make(chan struct{}, 1))
	turn := taken.(chan struct{})
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lastWord is how long a running sbatch may continue after ctx has ended, to report its job.
const lastWord = 15 * time.Second

// Submit submits a job unless one with the same key is queued, running or completing; then found is true. If a
// failure of sbatch leaves open whether the job exists, Submit looks for the key in the queue before it runs sbatch
// again, until ctx ends. If two machines submit the same key at once, the job with the lower number stays. Submit
// returns Refused if Slurm refuses the job, and Unanswered if ctx ends while it is unknown whether the job exists.
func (c *Cluster) Submit(ctx context.Context, j job.Job) (id job.ID, found bool, err error) {
	args, script, err := c.o.words(j)
	if err != nil {
		return "", false, err
	}
	end, err := c.awaitTurn(ctx, j.Key)
	if err != nil {
		return "", false, err
	}
	defer end()
	kept := c.o.keep(j)
	s := submission{c: c, job: j, kept: kept, call: call{name: "sbatch", args: args, stdin: script,
		environ: slices.Concat(j.Environ, kept.environ())}}
	for try := 0; ; try++ {
		id, found, err := s.try(ctx)
		if id != "" || err != nil {
			return id, found, err
		}
		job.Pause(ctx, c.o.Every, try)
		if ctx.Err() != nil {
			return "", false, s.unanswered(context.Cause(ctx))
		}
	}
}

type submission struct {
	c       *Cluster
	job     job.Job
	kept    kept
	call    call
	known   map[string]bool // earlier jobs of the key that had ended; nil: the queue was not read
	doubted time.Time       // when sbatch last left open whether the job exists; zero: never
	told    bool
}

func (s *submission) unanswered(err error) error {
	if s.doubted.IsZero() {
		return err
	}
	return &job.Unanswered{Scheduler: name, Key: s.job.Key, Cause: err,
		Remedy: "look for its comment with squeue -o '%i %k'"}
}

// try looks for the job and submits it if there is none. It returns an empty ID and no error if the caller must try
// again.
func (s *submission) try(ctx context.Context) (id job.ID, found bool, err error) {
	l, err := s.c.jobs.Look(ctx)
	if ctx.Err() != nil {
		return "", false, s.unanswered(context.Cause(ctx))
	}
	if err != nil {
		return "", false, nil
	}
	if s.known == nil {
		s.known = map[string]bool{}
		for number, e := range l.Jobs {
			if e.key == s.job.Key && ended(e.status.State) {
				s.known[number] = true
			}
		}
	}
	if number, ok := firstOf(l, s.job.Key, s.known); ok {
		return job.NewID(number, s.job.Key), s.doubted.IsZero(), nil
	}
	if !s.doubted.IsZero() && time.Since(s.doubted) < s.c.o.Grace {
		return "", false, nil // the request may still reach the controller
	}
	// Write nothing for an existing job: it has its own request or has removed it.
	if err := s.kept.write(); err != nil {
		return "", false, err
	}
	if id, err = s.sbatch(ctx); err != nil {
		return "", false, s.judge(ctx, err)
	}
	id, found = s.twin(ctx, id)
	return id, found, nil
}

// sbatch lets sbatch finish even if ctx ends: only its answer tells which job it made.
func (s *submission) sbatch(ctx context.Context) (job.ID, error) {
	run, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(lastWord, func() { stop(context.Cause(ctx)) })
	})()
	out, err := s.c.run(run, s.call)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) { // the sbatch of a site may print more
		number, _, _ := strings.Cut(strings.TrimSpace(line), ";") // the name of a cluster may follow
		if isNumber(number) {
			s.c.troubles.Over(full)
			return job.NewID(number, s.job.Key), nil
		}
	}
	return "", &failure{command: "sbatch", words: "unable to contact anybody who makes jobs: " +
		strconv.Quote(printable.Clip(strings.TrimSpace(out), mostField)) + " has no number of one"}
}

// passing are error messages, in lower case, after which the same job may be accepted later. After all of them except
// the last, the job may exist.
var passing = []string{"unable to contact", "timed out", "zero bytes", "connection refused", "connection reset",
	"connection failure", "connect failure", "temporarily un", "standby mode", "not connected", "authentication error",
	"munge", "receive failure", "send failure", "broken pipe", "unexpected message", "unreachable", "no route to host",
	"configuration source", submitLimit}

// submitLimit is part of the names of limits on the number of jobs, of a user or a group, which pass when other jobs
// end.
const submitLimit = "submitjob"

// judge returns the error of a failed sbatch; nil: the failure is temporary.
func (s *submission) judge(ctx context.Context, err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	exit, ran := errors.AsType[*exec.ExitError](err) // false: sbatch could not be started
	words := strings.ToLower(f.words)
	passes := func(word string) bool { return strings.Contains(words, word) }
	if ran && exit.Exited() && !slices.ContainsFunc(passing, passes) {
		if _, err := s.c.jobs.Look(ctx); err == nil {
			return &job.Refused{Scheduler: name, Name: s.job.Name, Words: f.words,
				Remedy: "ask for what the cluster has (sinfo and scontrol show partition say so)"}
		}
	}
	if strings.Contains(words, submitLimit) {
		s.c.troubles.Has(full, err.Error())
		return nil
	}
	s.doubted = time.Now()
	if !s.told {
		s.told = true
		s.c.troubles.Has(silent, err.Error())
	}
	return nil
}

// twin looks for another job of the same key that another process submitted at the same time. The job with the lower
// number stays; both processes see the same queue.
func (s *submission) twin(ctx context.Context, own job.ID) (id job.ID, found bool) {
	l, err := s.c.jobs.Look(ctx)
	if err != nil {
		return own, false
	}
	first, ok := firstOf(l, s.job.Key, s.known)
	if !ok || value(first) >= value(own.Name()) || l.Jobs[own.Name()].key != s.job.Key {
		return own, false
	}
	if _, err := s.c.cancel(ctx, own); err != nil {
		return own, false
	}
	return job.NewID(first, s.job.Key), true
}

// words returns the arguments and the standard input of sbatch.
func (o *Options) words(j job.Job) (args []string, script string, err error) {
	if err := o.check(j); err != nil {
		return nil, "", err
	}
	dir := o.dirOf(j.Key)
	// without --export, Slurm 26.05 ignores --export-file
	args = []string{"--parsable", "--no-requeue", "--nodes=1", "--ntasks=1", "--open-mode=append",
		"--export=ALL", "--export-file=3", "--comment=" + mark + j.Key, "--job-name=" + label(j), "--chdir=" + dir,
		"--output=" + strings.ReplaceAll(filepath.Join(dir, outputFile), "%", "%%")}
	args = append(args, o.options()...)
	amount := func(option string, n int64, unit string) {
		if n > 0 {
			args = append(args, "--"+option+"="+strconv.FormatInt(n, 10)+unit)
		}
	}
	amount("gpus", int64(j.GPUs), "")
	amount("cpus-per-task", int64(j.CPUs), "")
	amount("mem", (j.Memory+1<<20-1)>>20, "M")
	if j.Exclusive {
		args = append(args, "--exclusive")
	}
	if len(j.Avoids) > 0 {
		args = append(args, "--exclude="+strings.Join(j.Avoids, ","))
	}
	amount("time", int64((j.Time+time.Minute-1)/time.Minute), "")
	// sbatch reads no options after the first command
	return args, "#!/bin/sh\n:\nexport " + job.NameVariable + "=\"$SLURM_JOB_ID\"\n" + j.Script + "\n", nil
}

// never maps messages of sbatch, in lower case, after which no job can be submitted to their remedies: sbatch does
// not know the cluster, or the cluster does not know an option of all jobs.
var never = map[string]string{
	"configuration source": "name the cluster's configuration with SLURM_CONF, or run this on a machine of the cluster",
	"invalid partition":    "name one that sinfo lists",
	"invalid account":      "name one that sacctmgr show associations lists",
	"invalid qos":          "name one that sacctmgr show qos lists",
	"invalid feature":      "name those that sinfo -o %f lists",
	"generic resource":     "name those that sinfo -o %G lists",
	"group not permitted":  "name a partition whose AllowGroups has your group (scontrol show partition)",
}

// asked returns why no job can be submitted. It returns nil if the cluster does not answer or reports another error:
// other errors may depend on the job or be temporary.
func (c *Cluster) asked(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	options := c.o.options()
	_, err := c.run(ctx, call{name: "sbatch", args: append(options, "--test-only"), stdin: "#!/bin/sh\n"})
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return nil
	}
	for words, remedy := range never {
		if strings.Contains(strings.ToLower(f.words), words) {
			_, last, _ := strings.Cut(f.words, "allocation failure: ")
			return fmt.Errorf("%s: %s; %s", strings.Join(append([]string{"sbatch"}, options...), " "),
				cmp.Or(last, f.words), remedy)
		}
	}
	return nil
}

// options returns the options of sbatch for all jobs.
func (a *Asks) options() (args []string) {
	for _, o := range []struct{ name, value string }{
		{"partition", a.Partition}, {"account", a.Account}, {"qos", a.QOS}, {"constraint", a.Constraint},
		{"gres", a.Gres},
	} {
		if o.value != "" {
			args = append(args, "--"+o.name+"="+o.value)
		}
	}
	return args
}

// label returns the job's name without characters that scontrol uses between fields.
func label(j job.Job) string {
	name := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '=' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(j.Name, "_"))
	if name == "" {
		return j.Key
	}
	return printable.Clip(name, mostField)
}

func (o *Options) check(j job.Job) error {
	if !job.IsKey(j.Key) {
		return fmt.Errorf("job %q: its key %q is to be made of letters, digits and . _ : -, %d at most", j.Name, j.Key,
			job.MaxKey)
	}
	if !filepath.IsAbs(o.WorkDir) || strings.Contains(o.WorkDir, `\`) {
		return fmt.Errorf("job %s: the directory %q of jobs is to be an absolute path without \\, which Slurm takes "+
			"for more than a character", j.Name, o.WorkDir)
	}
	if strings.ContainsRune(j.Script, 0) {
		return fmt.Errorf("job %s: its script has a zero byte; pass such data in a file", j.Name)
	}
	for _, text := range []string{o.WorkDir, o.Partition, o.Account, o.QOS, o.Constraint, o.Gres} {
		if strings.ContainsAny(text, "\x00\n") {
			return fmt.Errorf("job %s: %q has more than one line, which Slurm's options cannot have", j.Name, text)
		}
	}
	for _, v := range j.Environ {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" || strings.ContainsRune(v, 0) {
			return fmt.Errorf("job %s: variable %q is to be NAME=value, without a zero byte", j.Name,
				printable.Clip(name, mostField))
		}
	}
	return nil
}
