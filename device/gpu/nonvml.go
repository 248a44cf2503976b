//go:build !linux || !cgo

package gpu

import (
	"context"
	"errors"
	"time"
)

func openNVML(context.Context, string, time.Duration) (answer, error) {
	return answer{}, errors.New("NVML: this benchgraph was built without cgo")
}
