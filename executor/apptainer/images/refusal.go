//go:build linux

package images

import (
	"fmt"
	"net/http"
)

// Refusal is an error with an HTTP status.
type Refusal struct {
	Status int
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

// Cannot returns the error for a feature that Apptainer lacks. It begins with words that package container
// recognizes.
func Cannot(format string, args ...any) error {
	return &Refusal{http.StatusNotImplemented, "Apptainer cannot do that: " + fmt.Sprintf(format, args...)}
}

// NotFound returns the error for a missing image or container.
func NotFound(format string, args ...any) error {
	return &Refusal{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// Refused returns an error with an HTTP status.
func Refused(status int, text string) error { return &Refusal{status, text} }
