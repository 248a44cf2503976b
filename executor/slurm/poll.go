package slurm

import (
	"context"
	"os"
	"strconv"

	"github.com/benchgraph/benchgraph/executor/job/poll"
)

// look is one reading of the queue: the jobs by number.
type look = poll.Look[entry]

// queue reads the jobs of the user.
func (c *Cluster) queue() (map[string]entry, error) {
	out, err := c.run(context.Background(), call{name: "squeue", args: []string{"--noheader", "--all",
		"--states=all", "--user=" + strconv.Itoa(os.Geteuid()), "--format=" + queueFormat}})
	if err != nil {
		c.troubles.Has(silent, err.Error())
		return nil, err
	}
	c.troubles.Over(silent)
	jobs := map[string]entry{}
	for _, e := range parseQueue(out) {
		jobs[e.number] = e
	}
	return jobs, nil
}

// firstOf returns the job of a key with the lowest number, out of those that have not ended or, unless known is nil,
// ended but are not in known.
func firstOf(l *look, key string, known map[string]bool) (first string, found bool) {
	for number, e := range l.Jobs {
		if e.key != key || ended(e.status.State) && (known == nil || known[number]) {
			continue
		}
		if !found || value(number) < value(first) {
			first, found = number, true
		}
	}
	return first, found
}

func value(number string) uint64 {
	n, _ := strconv.ParseUint(number, 10, 32)
	return n
}
