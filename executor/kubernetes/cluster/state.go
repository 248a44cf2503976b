package cluster

import (
	"cmp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchgraph/benchgraph/executor/job"
)

// States of Jobs in addition to those of package job.
const (
	completing job.State = "COMPLETING" // its processes may still write
	preempted  job.State = "PREEMPTED"  // for other Pods or because of the node
	nodeFail   job.State = "NODE_FAIL"
	cancelled  job.State = "CANCELLED"
)

// isTrue returns a condition of a Job; nil if the condition is missing or not true.
func isTrue(j *batchv1.Job, what batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if d := &j.Status.Conditions[i]; d.Type == what && d.Status == corev1.ConditionTrue {
			return d
		}
	}
	return nil
}

func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// over reports whether a Job has ended for good.
func over(j *batchv1.Job) bool {
	return isTrue(j, batchv1.JobComplete) != nil || isTrue(j, batchv1.JobFailed) != nil
}

// verdict is the state of a Job according to its conditions and Pods.
type verdict struct {
	job.End
	over  bool
	stuck stuck
}

// stuck is why a Job does not start.
type stuck struct {
	why  string // "": no known obstacle
	last int    // how many times the grace this may last; 0: without limit
}

// How many times the grace an obstacle may last.
const (
	atOnce  = 1
	soon    = 3  // a missing object may still be created
	patient = 15 // a registry or a volume may recover
	scaled  = 45 // an autoscaler may add a machine
)

// verdict returns the state of a Job from its conditions and its last Pod.
func (e entry) verdict() (v verdict) {
	v.Submitted = e.job.CreationTimestamp.Time
	var pod *corev1.Pod
	if len(e.pods) > 0 {
		pod = &e.pods[len(e.pods)-1]
		v.Node = job.Words(pod.Spec.NodeName)
	}
	failed := isTrue(e.job, batchv1.JobFailed)
	switch {
	case isTrue(e.job, batchv1.JobComplete) != nil:
		v.State, v.over = job.Completed, true
	case failed != nil:
		v.over = true
		v.failed(failed, pod)
	case e.job.DeletionTimestamp != nil, isTrue(e.job, batchv1.JobFailureTarget) != nil,
		isTrue(e.job, batchv1.JobSuccessCriteriaMet) != nil:
		v.State = completing
	case suspended(e.job):
		v.State, v.Reason = job.Pending, "the Job is suspended"
		if queue := e.job.Labels[queueLabel]; queue != "" {
			v.Reason = "waits in the queue " + job.Words(queue)
		}
	case pod == nil:
		v.State = job.Pending
	default:
		v.live(pod)
	}
	if pod != nil && v.State != job.Pending {
		v.Started = began(pod)
	}
	return v
}

// own returns the state of the job's container; it is empty before the container is made. A cluster may add containers
// to each Pod, in any order.
func own(pod *corev1.Pod) corev1.ContainerState {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.State
		}
	}
	return corev1.ContainerState{}
}

// began returns when the container of a Pod started; if that is unknown, when the Pod started.
func began(pod *corev1.Pod) time.Time {
	s := own(pod)
	switch {
	case s.Running != nil:
		return s.Running.StartedAt.Time
	case s.Terminated != nil:
		return s.Terminated.StartedAt.Time
	case pod.Status.StartTime != nil:
		return pod.Status.StartTime.Time
	}
	return time.Time{}
}

// late reports whether the container of a Pod had less than half of the Pod's time limit, which includes pulling the
// image. Pods whose container never started are not late.
func late(pod *corev1.Pod) bool {
	s := own(pod)
	if s.Running == nil && (s.Terminated == nil || s.Terminated.StartedAt.IsZero()) {
		return true
	}
	limit := pod.Spec.ActiveDeadlineSeconds
	return limit != nil && pod.Status.StartTime != nil &&
		began(pod).Sub(pod.Status.StartTime.Time) > time.Duration(*limit)*time.Second/2
}

// live sets the state from the Pod of a Job that has not ended.
func (v *verdict) live(pod *corev1.Pod) {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed, pod.DeletionTimestamp != nil:
		v.State = completing
	case pod.Status.Phase == corev1.PodRunning:
		v.State = job.Running
	default:
		v.State = job.Pending
		v.pending(pod)
	}
}

func (v *verdict) pending(pod *corev1.Pod) {
	for _, d := range pod.Status.Conditions {
		if d.Type == corev1.PodScheduled && d.Status == corev1.ConditionFalse {
			v.Reason = job.Words(cmp.Or(d.Message, d.Reason))
			if strings.Contains(d.Message, "persistentvolumeclaim") && strings.Contains(d.Message, "not found") {
				v.stuck = stuck{v.Reason, soon}
			}
			return
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			v.Reason = job.Words(strings.TrimSuffix(w.Reason+": "+w.Message, ": "))
			v.stuck = stuck{v.Reason, waits(w)}
			return
		}
	}
	if v.Node != "" {
		v.Reason = "its container is made on " + v.Node
	}
}

// lasting are messages of registries after which a retry gets the same answer.
var lasting = []string{"not found", "manifest unknown", "unauthorized", "denied", "forbidden",
	"authentication required", "does not exist", "no match for platform"}

// waits returns how many times the grace a container may wait for that reason.
func waits(w *corev1.ContainerStateWaiting) int {
	switch w.Reason {
	case "InvalidImageName", "ErrImageNeverPull":
		return atOnce
	case "ErrImagePull", "ImagePullBackOff":
		for _, word := range lasting {
			if strings.Contains(strings.ToLower(w.Message), word) {
				return soon
			}
		}
		return patient
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return soon
	}
	return patient
}

// failed sets the state of a failed Job from its last Pod; if the Pod is gone, from the Job's condition.
func (v *verdict) failed(why *batchv1.JobCondition, pod *corev1.Pod) {
	v.State, v.Reason = job.Failed, ""
	switch {
	case why.Reason == batchv1.JobReasonDeadlineExceeded:
		v.State = job.Timeout
		return
	case pod == nil:
		v.State, v.Reason = preempted, job.Words(why.Message)
		return
	}
	for _, d := range pod.Status.Conditions {
		if d.Type == corev1.DisruptionTarget && d.Status == corev1.ConditionTrue {
			v.State, v.Reason = disrupted(d.Reason, pod.Status.Reason), job.Words(cmp.Or(d.Message, d.Reason))
			return
		}
	}
	if pod.Status.Phase != corev1.PodFailed || deleted(pod) {
		v.State, v.Reason = preempted, job.Words(why.Message)
		return
	}
	v.Reason = job.Words(pod.Status.Message)
	switch reason := pod.Status.Reason; {
	case reason == "DeadlineExceeded" && late(pod):
		v.State, v.Reason = nodeFail, "most of its time was gone when its container was made: "+v.Reason
		return
	case reason == "DeadlineExceeded":
		v.State = job.Timeout
		return
	case reason == "Evicted", reason == "Preempting":
		v.State = preempted
		return
	case reason != "" && reason != "Error": // NodeLost, NodeShutdown, UnexpectedAdmissionError, OutOfcpu, …
		v.State = nodeFail
		return
	}
	t := own(pod).Terminated
	if t == nil {
		return
	}
	if v.Code, v.Signal = job.Exit(int(t.ExitCode)); t.Signal > 0 {
		v.Code, v.Signal = 0, int(t.Signal)
	}
	v.Reason = job.Words(cmp.Or(t.Message, t.Reason))
	if t.Reason == "OOMKilled" {
		v.State = job.OutOfMemory
	}
}

// deleted reports whether somebody deleted a Pod before its container ended; a signal then ended the container.
func deleted(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	at := pod.DeletionTimestamp.Time // includes the grace period of the Pod
	if pod.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	t := own(pod).Terminated
	return t == nil || !t.FinishedAt.Time.Before(at)
}

// disrupted returns the state of a Job whose Pod was disrupted.
func disrupted(why, reason string) job.State {
	switch why {
	case "DeletionByTaintManager", "DeletionByPodGC":
		return nodeFail
	case corev1.PodReasonTerminationByKubelet:
		if reason != "Evicted" && reason != "Preempting" {
			return nodeFail // the node shuts down
		}
	}
	return preempted
}

// quota reports whether a message says that a quota is exceeded, and whether the object alone exceeds the quota.
func quota(words string) (over, alone bool) {
	_, after, over := strings.Cut(words, "exceeded quota: ")
	if !over {
		return false, false
	}
	amounts := func(label string) map[string]string {
		_, text, _ := strings.Cut(after, label+": ")
		all := map[string]string{}
		for pair := range strings.SplitSeq(text, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok {
				break // the next label
			}
			all[name] = value
		}
		return all
	}
	limited := amounts("limited")
	for name, asked := range amounts("requested") {
		if limit, ok := limited[name]; ok && greater(asked, limit) {
			return true, true
		}
	}
	return true, false
}
