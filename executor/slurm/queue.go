package slurm

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/printable"
)

const (
	// queueFormat ends with the job's directory, which may contain any character. The directory tells the key: a
	// person, or a plugin of the cluster, may change the comment of a job.
	queueFormat = "%A|%T|%r|%N|%V|%S|%Z"
	queueFields = 7
	// mark begins the comments of benchgraph's jobs, for people; the key follows.
	mark = "benchgraph "
	// mostField limits the length of a field.
	mostField = 200
)

// entry is one job in Slurm's lists.
type entry struct {
	number   string
	key      string // empty: not a job of benchgraph
	status   job.Status
	code     int // of its script; this and the next two only from scontrol and sacct
	signal   int
	restarts int
}

// parseQueue parses the output of squeue. It skips lines without one of its jobs.
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
		if key, ours := strings.CutSuffix(filepath.Base(fields[6]), ofJob); ours && job.IsKey(key) {
			e.key = key
		}
		if e.status.State == job.Pending {
			e.status.Started = time.Time{} // only an estimate
		}
		all = append(all, e)
	}
	return all
}

// parseJob parses the output of scontrol -o show job. The first value of each field counts: fields that users fill in
// come later, except the job's name, which label makes harmless.
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

// parseAccount parses the output of sacct about one job. The last line counts: a requeued job has several.
func parseAccount(text, number string) (e entry, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(fields) != accountFields || fields[0] != number {
			continue
		}
		state, _, _ := strings.Cut(fields[1], " ") // such as "CANCELLED by 1000"
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

// field returns the printable text of a field; it is empty for Slurm's words for no value.
func field(text string) string {
	switch text = printable.Clip(printable.Line(text), mostField); text {
	case "(null)", "None", "N/A", "Unknown", "None assigned":
		return ""
	}
	return text
}

// moment parses a time in seconds since 1970. It returns the zero time for any other format, as commands in other
// sessions may print.
func moment(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return time.Time{}
	}
	return time.Unix(n, 0)
}

// exit parses CODE:SIGNAL.
func exit(text string) (code, signal int) {
	before, after, _ := strings.Cut(text, ":")
	code, _ = strconv.Atoi(before)
	signal, _ = strconv.Atoi(after)
	if code < 0 || code > 255 || signal < 0 || signal > 255 {
		return 0, 0
	}
	return code, signal
}
