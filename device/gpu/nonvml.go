//go:build !linux || !cgo

package gpu

import (
	"context"
	"errors"
	"time"
)

var errNoLibrary = errors.New("NVML: this benchgraph was built without cgo")

func openNVML(context.Context, string, time.Duration) (answer, error) { return answer{}, errNoLibrary }
