package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The time of a deletion has no parts of a second: a node has its whole time to end a Pod.
func TestAPodThatItsNodeDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(900 * time.Millisecond)
		deleted := metav1.NewTime(time.Now().Truncate(time.Second))
		e := entry{pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}}}
		time.Sleep(soon * time.Second)
		if stranded(e, time.Second) {
			t.Error("the node still has time")
		}
		if time.Sleep(time.Second); !stranded(e, time.Second) {
			t.Error("the node has had its time")
		}
	})
}

// A deleted Pod ends by a signal, which is not the end of its script. A Pod that ended before keeps its end.
func TestAPodThatIsDeleted(t *testing.T) {
	at, grace := metav1.Now(), int64(30)
	until := metav1.NewTime(at.Add(30 * time.Second))
	for after, want := range map[time.Duration]string{time.Second: "PREEMPTED", -time.Minute: "FAILED"} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &until, DeletionGracePeriodSeconds: &grace}}
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.NewTime(at.Add(after))}}}}
		j := &batchv1.Job{}
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		if v := (entry{j, []corev1.Pod{pod}}).verdict(); string(v.State) != want {
			t.Errorf("%s: %+v", after, v)
		}
	}
}

// A cluster may add containers to a Pod, in any place: the end of the job is that of its own container.
func TestAPodWithContainersOfOthers(t *testing.T) {
	ended := func(name string, code int32, after time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "by " + name,
				StartedAt: metav1.NewTime(time.Unix(0, 0).Add(after))}}}
	}
	j := &batchv1.Job{}
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	for _, others := range [][]corev1.ContainerStatus{
		{ended("a", 1, 0), ended(container, 7, time.Hour), ended("z", 0, 0)}, {ended(container, 7, time.Hour)},
	} {
		pod := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: others}}
		v := (entry{j, []corev1.Pod{pod}}).verdict()
		if v.Code != 7 || v.Reason != "by "+container || !v.Started.Equal(time.Unix(0, 0).Add(time.Hour)) {
			t.Errorf("%+v", v)
		}
	}
}
