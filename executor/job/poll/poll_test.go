package poll

import (
	"sync"
	"testing"
	"testing/synctest"
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

// However many jobs wait, each poll asks the scheduler once.
func TestWaitersShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, polls = 10_000, 5
		reads := 0
		p := New(time.Minute, func() (map[string]bool, error) {
			reads++
			return map[string]bool{"over": reads == polls}, nil
		})
		var all sync.WaitGroup
		for range jobs {
			all.Go(func() {
				err := p.Each(t.Context(), func(l *Look[bool]) (bool, error) { return l.Jobs["over"], l.Err })
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if reads != polls {
			t.Errorf("%d readings for %d jobs, want %d", reads, jobs, polls)
		}
	})
}
