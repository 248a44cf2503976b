package bucket

import (
	"errors"
	"fmt"
	"testing"
)

// A store that is away or full is asked again; with any other answer, another question is of no use.
func TestPatience(t *testing.T) {
	for _, of := range []struct {
		err   error
		again bool
	}{
		{away{errors.New("no answer")}, true},
		{fmt.Errorf("%w: of its quota", ErrFull), true},
		{ErrDenied, false},
		{ErrNoBucket, false},
		{errors.New("boom"), false},
	} {
		asked, told := 0, 0
		err := Patiently(t.Context(), 0, func(error) { told++ }, func() error {
			if asked++; asked > 1 {
				return nil
			}
			return of.err
		})
		if again := err == nil && asked == 2 && told == 1; again != of.again || !again && !errors.Is(err, of.err) {
			t.Errorf("%v: asked %d times, told %d times, then %v", of.err, asked, told, err)
		}
	}
}
