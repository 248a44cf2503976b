// Package objects names the objects that jobs leave in the bucket of a shared store, and finds the job of an object by
// its name.
//
// jobs/OWNER/KEY.json is the outcome of a job. For a job that makes a result again it is jobs/OWNER/KEY.ROUND.json, and
// the result is jobs/OWNER/KEY.ROUND.entry. If the shared store has another result under the key of an input, the input
// is jobs/OWNER/KEY.DIGEST.input.
package objects

import (
	"strings"

	"github.com/benchgraph/benchgraph/cache"
)

// Dir is the beginning of all names.
const Dir = "jobs/"

// The ends of names.
const (
	Outcome = ".json"
	Result  = ".entry"
	Input   = ".input"
)

// JobKey returns the key by which the scheduler knows the job of a node. For a job that makes a result again, the key
// has the round, so that no other job of the node has the same key; for other jobs, round is empty.
func JobKey(key cache.Key, owner, round string) string {
	name := key.String() + ":" + owner
	if round != "" {
		name += ":" + round
	}
	return name
}

// Round returns the round in the key of a job; "" if there is none.
func Round(jobKey string) string {
	_, rest, _ := strings.Cut(jobKey, ":")
	_, round, _ := strings.Cut(rest, ":")
	return round
}

// Name returns the name of an object that a job leaves; end is one of the ends.
func Name(jobKey, end string) string {
	key, rest, _ := strings.Cut(jobKey, ":")
	owner, round, again := strings.Cut(rest, ":")
	if again {
		key += "." + round
	}
	return Dir + owner + "/" + key + end
}

// NameOfInput returns the name of an input of jobs of a project.
func NameOfInput(owner string, e cache.Entry) string {
	return Name(JobKey(e.Key, owner, e.Digest), Input)
}

// By returns the owner and the key of the job that has left an object, and the end of the object's name. jobKey is
// empty if no job leaves objects with such a name.
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
