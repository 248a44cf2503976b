package slurm

import (
	"strings"

	"github.com/benchgraph/benchgraph/executor/job"
)

// ended reports whether a job has ended for good. A COMPLETING job has not: its processes may still write.
func ended(s job.State) bool {
	switch s {
	case job.Completed, "BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
		"REVOKED", "TIMEOUT":
		return true
	}
	return false
}

// explained adds an explanation to the reason why a job is pending, for users who do not know Slurm's names.
func explained(s job.Status, number string) job.Status {
	reason := strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(s.Reason))
	has := func(part string) bool { return strings.Contains(reason, part) }
	means := ""
	switch {
	case s.State != job.Pending || reason == "":
	case has("jobheld"):
		means = "it is held; scontrol release " + number + " lets it start"
	case has("reqnodenotavail"), has("nodesrequiredforjobare"):
		means = "sinfo -R says why nodes are out of use"
	case reason == "resources":
		means = "other jobs have what it needs"
	case reason == "priority":
		means = "other jobs come before it"
	case has("partitiondown"), has("partitioninactive"):
		means = "the partition starts no jobs now"
	case strings.HasPrefix(reason, "qos"), strings.HasPrefix(reason, "assoc"):
		means = "a limit of your account; other jobs have to end before"
	}
	if means != "" {
		s.Reason += " (" + means + ")"
	}
	return s
}

// stuck says whether a job waits for something that only a person can change.
type stuck int

const (
	moves    stuck = iota
	requeued       // stuck only if the job was requeued; otherwise a person holds the job for a while
	forever
)

// stuckOf reads a status. Slurm writes the same reason with spaces, with underscores, or without both.
func stuckOf(s job.Status) stuck {
	switch s.State {
	case "SPECIAL_EXIT", "REQUEUE_HOLD", "RESV_DEL_HOLD":
		return forever
	case job.Pending:
	default:
		return moves
	}
	reason := strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(s.Reason))
	switch reason {
	case "launchfailedrequeuedheld", "jobrequeuedinheldstate", "requeuedheld", "dependencyneversatisfied",
		"badconstraints", "invalidaccount", "invalidqos", "partitionnodelimit", "partitiontimelimit",
		"accountnotallowed", "qosnotallowed", "reservationdeleted", "maxmemperlimit":
		return forever
	case "jobheldadmin", "jobhelduser":
		return requeued
	}
	// such as QOSMaxGRESPerJob and AssocMaxWallDurationPerJobLimit: this job alone needs too much
	if strings.Contains(reason, "perjob") && !strings.Contains(reason, "grp") {
		return forever
	}
	return moves
}
