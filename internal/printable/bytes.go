package printable

import "github.com/docker/go-units"

// Bytes returns an amount of memory in words: 79.6 GiB.
func Bytes(n int64) string {
	return units.CustomSize("%.4g %s", float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"})
}
