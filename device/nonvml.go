//go:build !linux || !cgo

package device

import "errors"

func openNVML(string) (*Driver, error) {
	return nil, errors.New("NVML: this benchgraph was built without cgo")
}
