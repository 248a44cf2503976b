//go:build linux

package images

import (
	"fmt"
	"net/http"
)

// Refusal is an error with a status of HTTP.
type Refusal struct {
	Status int
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

// Cannot is the error for what Apptainer does not have. It begins with words that package container knows.
func Cannot(format string, args ...any) error {
	return &Refusal{http.StatusNotImplemented, "Apptainer cannot do that: " + fmt.Sprintf(format, args...)}
}

// NotFound is the error for something that is not there.
func NotFound(format string, args ...any) error {
	return &Refusal{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// Refused is the error with a status.
func Refused(status int, text string) error { return &Refusal{status, text} }
