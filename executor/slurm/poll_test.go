package slurm

import (
	"testing"
	"time"
)

// The queue is looked at less often as the youngest job grows old.
func TestEvery(t *testing.T) {
	c := &Cluster{waiting: map[*waiter]bool{}, polling: true}
	if _, any := c.every(); any || c.polling {
		t.Error("it polls, and nobody waits")
	}
	old := time.Hour
	for _, age := range []time.Duration{time.Hour, 10 * time.Minute, time.Minute, 0} {
		c.waiting[&waiter{since: time.Now().Add(-age)}] = true
		every, any := c.every()
		want := min(max(age/20, time.Second), 30*time.Second)
		if !any || every < want || every > want+time.Second || every > old {
			t.Errorf("%s, where the youngest is %s old", every, age)
		}
		old = every
	}
}
