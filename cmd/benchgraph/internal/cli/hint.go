package cli

import "fmt"

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
