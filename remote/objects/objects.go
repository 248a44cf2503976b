// Package objects names what jobs leave in the bucket of a shared store, and finds out from a name whose it is.
//
// jobs/OWNER/KEY.json is the outcome of a job. Of a job that makes a result again it is jobs/OWNER/KEY.ROUND.json, and
// jobs/OWNER/KEY.ROUND.entry is the result. An input of which the shared store has another result under its key is
// jobs/OWNER/KEY.DIGEST.input.
package objects

import (
	"strings"

	"github.com/benchgraph/benchgraph/cache"
)

// Dir begins the names.
const Dir = "jobs/"

// Ends of the names.
const (
	Outcome = ".json"
	Result  = ".entry"
	Input   = ".input"
)

// JobKey is the key by which the scheduler knows the job of a node. A job that makes a result again has the round in
// it, so that it is never taken for another job of the node. round is empty for any other job.
func JobKey(key cache.Key, owner, round string) string {
	name := key.String() + ":" + owner
	if round != "" {
		name += ":" + round
	}
	return name
}

// Round is the round in the key of a job; empty: there is none.
func Round(jobKey string) string {
	_, rest, _ := strings.Cut(jobKey, ":")
	_, round, _ := strings.Cut(rest, ":")
	return round
}

// Name is the name of what a job leaves; end is one of the ends.
func Name(jobKey, end string) string {
	key, rest, _ := strings.Cut(jobKey, ":")
	owner, round, again := strings.Cut(rest, ":")
	if again {
		key += "." + round
	}
	return Dir + owner + "/" + key + end
}

// NameOfInput is the name of an input of jobs of a project.
func NameOfInput(owner string, e cache.Entry) string {
	return Name(JobKey(e.Key, owner, e.Digest), Input)
}

// By returns the owner and the key of the job that has left an object, and the end of its name. The key is empty if no
// job leaves objects of such a name.
func By(object string) (owner, jobKey, end string) {
	owner, name, _ := strings.Cut(strings.TrimPrefix(object, Dir), "/")
	for _, end := range []string{Outcome, Result, Input} {
		if name, ok := strings.CutSuffix(name, end); ok {
			key, round, again := strings.Cut(name, ".")
			if key += ":" + owner; again {
				key += ":" + round
			}
			return owner, key, end
		}
	}
	return owner, "", ""
}
