package cluster

import (
	"testing"
	"testing/synctest"
	"time"

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
