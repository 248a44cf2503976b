package slurm

import (
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/printable"
)

const (
	// queueFormat ends with what can hold any character: the comment.
	queueFormat = "%A|%T|%r|%N|%V|%S|%k"
	queueFields = 7
	// mark is the beginning of the comments of our jobs; their keys follow.
	mark = "benchgraph "
	// mostField bounds a field that is shown.
	mostField = 200
)

// entry is one job, as Slurm lists it.
type entry struct {
	number   string
	key      string // empty: it is not ours
	status   job.Status
	code     int // of its script; from scontrol and sacct alone, as the next two
	signal   int
	restarts int
}

// parseQueue reads the answer of squeue. Lines that are none of its jobs are left out.
func parseQueue(text string) []entry {
	var all []entry
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", queueFields)
		if len(fields) != queueFields || !isNumber(fields[0]) {
			continue
		}
		e := entry{number: fields[0], status: job.Status{State: job.State(field(fields[1])), Reason: field(fields[2]),
			Node: field(fields[3]), Submitted: moment(fields[4]), Started: moment(fields[5])}}
		if e.status.State == "" {
			continue
		}
		e.key, _ = strings.CutPrefix(fields[6], mark)
		if !job.IsKey(e.key) || !strings.HasPrefix(fields[6], mark) {
			e.key = ""
		}
		if e.status.State == job.Pending {
			e.status.Started = time.Time{} // an estimate
		}
		all = append(all, e)
	}
	return all
}

// parseJob reads the answer of scontrol -o show job. Fields are taken where they are first: those that users fill in
// come later, but for the name of the job, which Submit keeps in order.
func parseJob(text string) (entry, bool) {
	line, _, _ := strings.Cut(text, "\n")
	values := map[string]string{}
	for word := range strings.SplitSeq(line, " ") {
		name, value, ok := strings.Cut(word, "=")
		if _, known := values[name]; ok && !known && len(values) < 200 {
			values[name] = value
		}
	}
	if !isNumber(values["JobId"]) || field(values["JobState"]) == "" {
		return entry{}, false
	}
	e := entry{number: values["JobId"], status: job.Status{State: job.State(field(values["JobState"])),
		Reason: field(values["Reason"]), Node: field(values["NodeList"]), Submitted: moment(values["SubmitTime"]),
		Started: moment(values["StartTime"])}}
	e.code, e.signal = exit(values["ExitCode"])
	e.restarts, _ = strconv.Atoi(values["Restarts"])
	if e.status.State == job.Pending {
		e.status.Started = time.Time{}
	}
	return e, true
}

const (
	accountFormat = "JobIDRaw,State,ExitCode,NodeList,Submit,Start"
	accountFields = 6
)

// parseAccount reads the answer of sacct about one job: its last line counts, as a job that was requeued has several.
func parseAccount(text, number string) (e entry, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(fields) != accountFields || fields[0] != number {
			continue
		}
		state, _, _ := strings.Cut(fields[1], " ") // CANCELLED by 1000
		e = entry{number: number, status: job.Status{State: job.State(field(state)), Node: field(fields[3]),
			Submitted: moment(fields[4]), Started: moment(fields[5])}}
		e.code, e.signal = exit(fields[2])
		ok = e.status.State != ""
	}
	return e, ok
}

func isNumber(text string) bool {
	n, err := strconv.ParseUint(text, 10, 32)
	return err == nil && n > 0
}

// field is the text of a field, fit to be shown; empty where Slurm says that it has none.
func field(text string) string {
	switch text = job.Short(printable.Line(text), mostField); text {
	case "(null)", "None", "N/A", "Unknown", "None assigned":
		return ""
	}
	return text
}

// moment reads a time in seconds since 1970. Commands of other sessions may say it otherwise: then it is not known.
func moment(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return time.Time{}
	}
	return time.Unix(n, 0)
}

// exit reads CODE:SIGNAL.
func exit(text string) (code, signal int) {
	before, after, _ := strings.Cut(text, ":")
	code, _ = strconv.Atoi(before)
	signal, _ = strconv.Atoi(after)
	if code < 0 || code > 255 || signal < 0 || signal > 255 {
		return 0, 0
	}
	return code, signal
}
