package image

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/container"
)

// A change of an image waits for the next second after the image was made. The image may be from the future, by another
// clock.
func TestAChangeOfAnImageWaitsForTheNextSecond(t *testing.T) {
	for name, test := range map[string]struct{ age, want time.Duration }{
		"made just now":      {300 * time.Millisecond, 700 * time.Millisecond},
		"made long ago":      {time.Hour, 0},
		"made in the future": {-time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(max(0, test.age%time.Second)) // since a whole second, with which the time of a bubble begins
				m := &making{at: container.Image{Created: time.Now().Add(-test.age)}}
				begun := time.Now()
				if err := m.nextSecond(t.Context()); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(begun); waited != test.want {
					t.Errorf("waited %s, want %s", waited, test.want)
				}
			})
		})
	}
}
