package cli

import "fmt"

// HintError is an error with what to do about it.
type HintError struct {
	Err    error
	Remedy string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }

// Hint makes a HintError of a remedy and the format of the error.
func Hint(remedy, format string, args ...any) error {
	return &HintError{fmt.Errorf(format, args...), remedy}
}
