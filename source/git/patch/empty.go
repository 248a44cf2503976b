package patch

import (
	"bytes"
	"errors"
)

// ErrEmpty says that a patch is a text without anything in it.
var ErrEmpty = errors.New("it is empty")

// RefuseEmpty returns an error for a text without any difference, whatever else may be wrong with the text. The error
// for a text of nothing but space is ErrEmpty.
func RefuseEmpty(text []byte) error {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return ErrEmpty
	case len(split(text)) == 0:
		return errors.New("there is no difference in it")
	}
	return nil
}
