package printable

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 30 * time.Millisecond: "30 ms", 4200 * time.Millisecond: "4.2 s", 12 * time.Second: "12 s",
		65 * time.Second: "1 min 5 s",
		2 * time.Hour:    "2 h", 50 * time.Hour: "2 d 2 h", 90 * time.Minute: "1 h 30 min",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", time.Duration(d), got, want)
		}
	}
}
