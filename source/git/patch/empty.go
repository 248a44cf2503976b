package patch

import (
	"bytes"
	"errors"
)

// ErrEmpty is the error for a patch of only space.
var ErrEmpty = errors.New("it is empty")

// RefuseEmpty returns an error for a text without any difference, whatever else may be wrong with it. For a text of
// only space it returns ErrEmpty.
func RefuseEmpty(text []byte) error {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return ErrEmpty
	case len(split(text)) == 0:
		return errors.New("there is no difference in it")
	}
	return nil
}
