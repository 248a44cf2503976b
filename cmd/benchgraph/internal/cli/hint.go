package cli

import (
	"errors"
	"fmt"
	"os"
)

// HintError is an error with a remedy for the user.
type HintError struct {
	Err    error
	Remedy string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }

// Hint returns a HintError with a remedy; format and args give the error.
func Hint(remedy, format string, args ...any) error {
	return &HintError{fmt.Errorf(format, args...), remedy}
}

// CauseOf returns the error of a file without the operation and the path, which the message names itself.
func CauseOf(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
