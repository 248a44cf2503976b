package poll

import (
	"testing"
	"time"
)

// The jobs are looked at less often as the youngest wait grows old.
func TestInterval(t *testing.T) {
	p := New(0, func() (map[string]bool, error) { return nil, nil })
	p.polling = true
	if _, wanted := p.interval(); wanted || p.polling {
		t.Error("it polls, and nobody waits")
	}
	old := time.Hour
	for _, age := range []time.Duration{time.Hour, 10 * time.Minute, time.Minute, 0} {
		p.waiting[&waiter[bool]{since: time.Now().Add(-age)}] = true
		every, wanted := p.interval()
		want := min(max(age/20, time.Second), 30*time.Second)
		if !wanted || every < want || every > want+time.Second || every > old {
			t.Errorf("%s, where the youngest is %s old", every, age)
		}
		old = every
	}
}
