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

// Changes returns the lines of a patch that say what it changes. Exports of the same change may differ in all others.
func Changes(text []byte) (changes []byte) {
	for line := range bytes.Lines(text) {
		if line[0] == '+' || line[0] == '-' {
			changes = append(changes, line...)
		}
	}
	return changes
}
